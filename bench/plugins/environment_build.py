"""Adding and removing environments of plug-ins.

Installing a package may run its author's setup code. With bubblewrap that code has the network, and may write the
environment's own folder alone; the home folder is hidden from it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from pydantic import JsonValue, ValidationError

from bench import image_root
from bench.contract.evaluator import NAME
from bench.contract.preset import PRESETS
from bench.disk.atomic_file import write_atomically
from bench.plugins import author_repository, environments, registry
from bench.plugins.author_repository import Declaration, Repository
from bench.plugins.environments import AddedPlugin, Environment, Manifest
from bench.plugins.groups import SAID, Group
from bench.plugins.interpreter_probe import Interpreter, probe, run
from bench.plugins.interview import UNCONFINED
from bench.plugins.spec import PluginSpec, UsageError
from bench.plugins.third_party import rebuild
from bench.room_types import REPOSITORY
from bench.sandbox import DATA, confined, environment, installing, own_sites, remedy, search_path, why_not
from bench.sandbox import python as own_python
from bench.shadowing import HOME, PACKAGES
from bench.wire.text import line, plain

ORIGIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
ADAPTERS = "methods/official"
PYTHON = "/usr/bin/python3"
"""The usual interpreter of an image."""
IGNORED = (".git", "__pycache__", ".venv", "venv", "*.egg-info", "build", "dist", ".tox", ".nox")


@dataclass(frozen=True)
class Wanted:
    """A request to add plug-ins.

    Args:
        requirements: As pip takes them: names, folders, wheels.
        files: Python files with plug-in classes.
        python: An interpreter; None for the benchmark's own.
        alone: Share no package with the benchmark.
        sandbox: Run setup code in a sandbox.
        root: The unpacked image that `python` lies in; None for this machine.
    """

    requirements: tuple[str, ...]
    files: tuple[Path, ...]
    python: Path | None
    alone: bool
    sandbox: bool
    root: Path | None = None
    repository: Path | None = None
    commit: str | None = None

    @classmethod
    def of(
        cls, words: Sequence[str], *, python: str | None, alone: bool, sandbox: bool, root: str | None = None,
        repo: str | None = None, commit: str | None = None,
    ) -> Wanted:  # fmt: skip
        """The request of a command.

        Raises:
            UsageError: A file or interpreter is missing, or a name may be a folder here or a package of an index.
        """
        if sandbox and (reason := why_not()) is not None:
            raise UsageError(
                f"other authors' setup code runs in a sandbox, and {reason}: {remedy()}, or let it run with your "
                "rights by --isolation processes"
            )
        files, requirements = list[Path](), list[str]()
        for word in words:
            path = _adapter(word) or Path(word).expanduser()
            if path.suffix == ".py":
                if not path.is_file():
                    raise UsageError(f"no such plug-in file: {word}")
                files.append(path.resolve())
            else:
                local = path.exists() and ("/" in word or word in (".", "..") or path.suffix == ".whl")
                if not local and _project(path):
                    raise UsageError(
                        f"{word} may be the folder here or a package of an index: write ./{word} for the folder, "
                        f"or '{word}>=0' for the package"
                    )
                requirements.append(str(path.resolve()) if local else word)
        if bad := [word for word in requirements if word.startswith("-")]:
            raise UsageError(f"expected a package, a folder, a wheel or a file of Python, got {bad[0]!r}")
        if not words and python is None and root is None:
            raise UsageError("name a package, a folder, a wheel, a file of Python, or an interpreter by --python")
        repository = None if repo is None else Path(repo).expanduser().absolute()
        requirements += _needs(files, repository, commit)
        if root is not None:
            return cls._in_image(
                requirements,
                files,
                Path(root).expanduser(),
                Path(python or PYTHON),
                repository,
                commit,
                sandbox=sandbox,
            )
        found = None if python is None else shutil.which(Path(python).expanduser())
        if python is not None and found is None:
            raise UsageError(f"no such interpreter: {python}")
        where = None if found is None else Path(found).absolute()
        return cls(
            tuple(requirements), tuple(files), where, alone or where is not None, sandbox, None, repository, commit
        )

    @classmethod
    def _in_image(
        cls, requirements: Sequence[str], files: Sequence[Path], root: Path, python: Path, repository: Path | None,
        commit: str | None, *, sandbox: bool,
    ) -> Wanted:  # fmt: skip
        if requirements:
            raise UsageError(f"an image has its own packages: install {requirements[0]} in it, and unpack it again")
        if not sandbox:
            raise UsageError("an image is the root of a sandbox: leave out --isolation processes")
        if not python.is_absolute() or ".." in python.parts:
            raise UsageError(f"--python must be a full path within the image, such as {PYTHON}, got {python}")
        try:
            whole = image_root.checked(root, [Path.home(), environments.root()])
        except image_root.ImageError as error:
            raise UsageError(str(error)) from error
        return cls((), tuple(files), python, True, True, whole, repository, commit)

    @property
    def name(self) -> str:
        """A name for the environment, from the first word."""
        first = next(iter([*(str(path) for path in self.files), *self.requirements]), str(self.root or self.python))
        text = Path(first).name.removesuffix(".py") if "/" in first else re.split(r"[^\w.-]", first)[0]
        text = text.partition("-")[0] if text.endswith(".whl") else text
        return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[: environments.LONGEST_NAME].strip("-")

    @property
    def words(self) -> list[str]:
        """The words again, with full paths."""
        python = [] if self.python is None else ["--python", str(self.python)]
        python += [] if self.root is None else ["--root", str(self.root)]
        python += [] if self.repository is None else ["--repo", str(self.repository)]
        python += [] if self.commit is None else ["--commit", self.commit]
        return [*self.requirements, *map(str, self.files), *python, *(["--alone"] if self.alone else [])]


def _project(folder: Path) -> bool:
    """True if a folder holds a package."""
    return any((folder / name).is_file() for name in ("pyproject.toml", "setup.py", "setup.cfg"))


def _adapter(word: str) -> Path | None:
    """The file of this project's adapter of that name, or None."""
    path = HOME / ADAPTERS / f"{word.replace('-', '_')}.py"
    return path if NAME.fullmatch(word) and path.is_file() else None


def _needs(files: Sequence[Path], repository: Path | None, commit: str | None) -> list[str]:
    """Packages that an adapter asks for.

    Raises UsageError without its repository, and for one without adapter.
    """
    said = {path: found for path in files if (found := author_repository.declared(path)) is not None}
    if repository is None:
        if commit is not None:
            raise UsageError("--commit names a commit of the checkout that --repo names")
        for path, found in said.items():
            where = f" by `git clone {found.url}`" if found.url else ""
            raise UsageError(f"{path.stem} runs its authors' code: get it{where}, and name the checkout by --repo")
        return []
    if len(files) != 1:
        raise UsageError(f"--repo goes with one file of Python, the adapter that runs the code, got {len(files)}")
    return [package for found in said.values() for package in found.packages]


def add(wanted: Wanted, name: str | None = None, notify: Callable[[str], None] = lambda text: None) -> Environment:
    """Make an environment, ask its room for plug-ins, and write the manifest.

    An earlier environment of that name is replaced once the new one works; a failure leaves it as it was.

    Raises:
        UsageError: It cannot be made, or has no plug-in that can be used; the text says why.
    """
    name = environments.valid_name(name or wanted.name)
    place = environments.root() / name
    environments.root().parent.mkdir(parents=True, exist_ok=True)
    for each in (environments.root(), place):
        each.mkdir(exist_ok=True, mode=0o700)
    before = {path.name for path in place.iterdir()}
    folder = Path(tempfile.mkdtemp(prefix="made-", dir=place))  # of mode 0700
    try:
        UNCONFINED.set(not wanted.sandbox)
        manifest = _made(wanted, folder, notify)
        found = _described(Environment(name=name, manifest=manifest), notify)
        _write(place / environments.MANIFEST, found.manifest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # another environment of that name is there
            place.rmdir()
        raise
    for old in before - {environments.MANIFEST}:
        shutil.rmtree(place / old, ignore_errors=True)
    environments.forget()
    registry.entries.cache_clear()
    return found


def remove(name: str) -> None:
    """Remove an environment. Raises UsageError if there is none of that name."""
    place = environments.root() / environments.valid_name(name)
    if not place.is_dir():
        environments.read(name)
    (place / environments.MANIFEST).unlink(missing_ok=True)  # first: what is left is then no environment
    shutil.rmtree(place)
    registry.entries.cache_clear()


def _made(wanted: Wanted, folder: Path, notify: Callable[[str], None]) -> Manifest:
    """The environment with its packages, not described yet."""
    if wanted.root is not None:
        return _of_image(wanted, wanted.root, folder, notify)
    base = probe(wanted.python or Path(sys.executable), sandbox=wanted.sandbox)
    prefix, version = base.prefix, base.version
    in_place = wanted.python is not None and not wanted.requirements
    shared = not wanted.alone
    if in_place:
        own = base.path.parent.parent
        interpreter, whole = base.path, own if (own / "pyvenv.cfg").is_file() else prefix
    else:
        whole = folder / "environment"
        notify(f"making an environment of {version}")
        uv = shutil.which("uv") if not shared else None
        base.run(["-I", "-m", "venv", "--without-pip", str(whole)], "the environment cannot be made", folder)
        interpreter = whole / "bin" / "python"
        if shared:
            _share(whole)
        if wanted.requirements:
            notify(f"installing {' '.join(wanted.requirements)}")
            before = _links(folder)
            _install(
                wanted, folder, interpreter, uv, base.wheel, [*environments.parts(prefix), *environments.parts(whole)]
            )
            _check_links(folder, before)
    files, repository = _copied(wanted, folder)
    sites = environments.packages(whole)
    if not in_place:
        _clean(sites, folder, base, shared=shared)
    made = None if in_place else shared
    shown = list(dict.fromkeys([*environments.parts(prefix), *environments.parts(whole)]))
    if not in_place and (out := [path for path in (*sites, *environments.parts(whole)) if not _within(path, folder)]):
        raise UsageError(f"an installation put a link that leads out of its environment at {out[0]}")
    return Manifest(
        requirements=wanted.words,
        interpreter=interpreter,
        folder=folder,
        shown=shown,
        sites=sites,
        files=files,
        repository=repository,
        shared=shared,
        python=version,
        built=("sandbox" if wanted.sandbox else "processes") if wanted.requirements else "not",
        added=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=environments.digest([*sites, *environments.copies(files, repository)], version, made),
        stamp=environments.stamp([*sites, *environments.copies(files, repository)], made),
        plugins=[],
    )


def _copied(wanted: Wanted, folder: Path) -> tuple[list[Path], Repository | None]:
    """Copies of the files of Python, and of the repository."""
    files = []
    for path in wanted.files:
        (folder / "files").mkdir(exist_ok=True)
        files.append(Path(shutil.copy(path, folder / "files" / path.name)))
    if wanted.repository is None:
        return files, None
    said = author_repository.declared(files[0]) or Declaration()
    return files, author_repository.copied(wanted.repository, said, wanted.commit, folder / REPOSITORY)


def _of_image(wanted: Wanted, root: Path, folder: Path, notify: Callable[[str], None]) -> Manifest:
    """The environment of an image, which stays where it is."""
    assert wanted.python is not None
    files, repository = _copied(wanted, folder)
    try:
        version = probe(wanted.python, sandbox=True, root=root).version
    except image_root.ImageError as error:
        raise UsageError(str(error)) from error
    notify(f"reading the image {root}: all its files count in the environment's digest")
    return Manifest(
        requirements=wanted.words,
        interpreter=wanted.python,
        folder=folder,
        root=root,
        hidden=list(image_root.folders(root, DATA)),
        shown=[],
        sites=[],
        files=files,
        repository=repository,
        shared=False,
        python=version,
        built="not",
        added=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=environments.digest(environments.copies(files, repository), version, None, root),
        stamp=environments.stamp(environments.copies(files, repository), None, root),
        plugins=[],
    )


BETWEEN_MACHINES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
"""Metadata that tells of the installation: it differs between machines, and could hold what no digest counts."""


def _links(folder: Path) -> dict[Path, Path]:
    """Targets of the links below a folder; none is followed."""
    found = (Path(place, name) for place, inner, names in os.walk(folder) for name in (*inner, *names))
    return {path: path.readlink() for path in found if path.is_symlink()}


def _check_links(folder: Path, before: Mapping[Path, Path]) -> None:
    """Check what setup code left, before anything outside a sandbox writes there.

    Raises:
        UsageError: A link was changed or leads out of the folder, or stands where this project's own files go.
    """
    for path, to in _links(folder).items():
        ours = path.name == environments.LAYER or environments.OURS.fullmatch(path.name)
        if before.get(path) != to and (ours or path in before or not _within(path, folder)):
            raise UsageError(f"an installation put a link that leads out of its environment at {path}")
    if missing := [path for path in before if not path.is_symlink()]:
        raise UsageError(f"an installation replaced {missing[0]}, by which its environment's Python starts")


def _clean(sites: Sequence[Path], folder: Path, base: Interpreter, *, shared: bool) -> None:
    """Remove what the digest does not count, and compile anew.

    By the interpreter below the environment, whose own was open to setup code and runs in sandboxes only.
    """
    for site in sites:
        if not _within(site, folder):
            continue
        for path in sorted(site.rglob("*"), reverse=True):
            if path.is_symlink():
                continue
            of_installer = path.parent.suffix == ".dist-info" and path.name in BETWEEN_MACHINES
            if path.name == "__pycache__" and path.is_dir():
                shutil.rmtree(path)
            elif path.is_file() and (path.suffix == ".pyc" or of_installer):
                path.unlink()
            elif shared and path.parent == site and environments.OURS.fullmatch(path.name) and path.is_dir():
                shutil.rmtree(path)
    if shared:
        _share(folder / "environment")
    for site in sites:
        if _within(site, folder):
            with suppress(UsageError):  # files of other versions of Python do not compile
                base.run(["-I", "-S", "-m", "compileall", "-q", str(site)], "packages cannot be compiled", folder)


def _within(path: Path, folder: Path) -> bool:
    """If a path leads into a folder; sandboxes show where links lead."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links that lead to each other
        return False


def _share(folder: Path) -> None:
    """Let the environment find the benchmark's packages, after its own."""
    (site,) = environments.packages(folder)
    places = dict.fromkeys([HOME, *search_path(), *own_sites()])
    (site / environments.LAYER).write_text("".join(f"{place}\n" for place in places), encoding="utf-8")
    # Without its requirements: those of this interpreter stand, whatever pip makes of them.
    own = distribution(registry.HOME)
    stub = site / f"{registry.HOME.replace('-', '_')}-{own.version}.dist-info"
    stub.mkdir()
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {registry.HOME}\nVersion: {own.version}\n",
        "entry_points.txt": own.read_text("entry_points.txt") or "",
        "INSTALLER": "bench\n",
    }
    for name, text in texts.items():
        (stub / name).write_text(text, encoding="utf-8")


def _install(
    wanted: Wanted, folder: Path, interpreter: Path, uv: str | None, wheel: Path | None, shown: Sequence[Path]
) -> None:
    """Install the requirements, in a sandbox if it is asked for."""
    sources = list(_sources(wanted.requirements, folder))
    if uv is not None:
        command = [uv, "pip", "install", "--quiet", "--python", str(interpreter), "numpy", *sources]
    else:
        pip = ["-m", "pip"] if not wanted.alone and find_spec("pip") is not None else [f"{wheel}/pip"]
        if wheel is None and pip[0] != "-m":
            raise UsageError("its Python has no pip: install uv, or the package python3-venv of your system")
        command = [str(interpreter), *pip, "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        command += ["--no-warn-script-location", *(["numpy"] if wanted.alone else []), *sources]
    scratch = folder / "scratch"
    scratch.mkdir()
    variables = {"TMPDIR": str(scratch), "PIP_NO_CACHE_DIR": "1", "UV_CACHE_DIR": str(scratch / "uv")}
    if wanted.sandbox:
        local = [path for path in map(Path, sources) if path.is_absolute()]
        files = [path for path in (*local, wheel, None if uv is None else Path(uv)) if path is not None]
        base = list(own_python()) if not wanted.alone else []
        command = confined(
            command, folder=None, files=files, device="cpu", interpreter=[*base, *shown],
            installs=installing(folder, variables),
        )  # fmt: skip
        variables = environment(sandbox=True)
    else:
        variables = {**os.environ, **variables}
    run(command, f"{' '.join(wanted.requirements)} cannot be installed", variables)
    for name in ("scratch", "sources"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _sources(requirements: Sequence[str], folder: Path) -> Iterator[str]:
    """The requirements, folders as copies: a build writes into its folder."""
    for number, word in enumerate(requirements):
        path = Path(word)
        if path.is_absolute() and path.is_dir():
            copy = folder / "sources" / str(number) / path.name
            shutil.copytree(path, copy, ignore=shutil.ignore_patterns(*IGNORED), symlinks=True)
            yield str(copy)
        else:
            yield word


def _described(made: Environment, notify: Callable[[str], None]) -> Environment:
    """The environment with the plug-ins that its room found."""
    task = {
        "mode": "list", "files": [str(path) for path in made.manifest.files], "presets": [*PRESETS],
        "own": [*PACKAGES], "words": SAID, "name": made.name,
    }  # fmt: skip
    answer = environments.ask(made, task, made.name)
    found = [_checked(each, made.name) for each in answer] if isinstance(answer, list) else []
    if not found:
        raise UsageError(
            f"{made.name} has no plug-in: a package has entry points of the groups bench.methods or bench.attacks, and "
            "a file has classes that derive from Method or Attack and have a name"
        )
    names = [(each.group, each.name) for each in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"{made.name} has two plug-ins called {line(twice[0][1])}")
    if (code := made.manifest.repository) is not None:
        found = [each.model_copy(update={"origin": code.label, "version": code.commit}) for each in found]
        for text in code.told():
            notify(text)
    for each in found:
        notify(f"{registry.noun(each.group)} {each.name}: {each.about}")
    return made.model_copy(update={"manifest": made.manifest.model_copy(update={"plugins": found})})


def _checked(told: JsonValue, environment_name: str) -> AddedPlugin:
    """A plug-in as a room listed it. Raises UsageError for a lie."""
    if isinstance(told, dict) and "error" in told:
        raise UsageError(f"{line(str(told.get('name')))} cannot be used: {plain(str(told['error']))}")
    try:
        found = AddedPlugin.model_validate(told)
    except ValidationError as error:
        raise UsageError(
            f"a plug-in has a description that cannot be used: {line(str(error.errors()[0]['msg']))}"
        ) from error
    rival = registry.entries(found.group).get(found.name)
    if rival is not None and rival.environment != environment_name:
        other = f"; or run `bench plugin remove {rival.environment}` first" if rival.environment else ""
        raise UsageError(
            f"the name {found.name!r} is that of a registered {registry.noun(found.group)} of {rival.origin}: choose "
            f"another{other}"
        )
    if ORIGIN.fullmatch(found.origin) is None:
        raise UsageError(f"a package must be called by A-Z, a-z, 0-9, ., _ and -, got {found.origin!r}")
    if re.sub(r"[-_.]+", "-", found.origin).lower() == registry.HOME:
        raise UsageError(f"a package of another author may not be called {registry.HOME}")
    works = False
    for preset, answer in found.presets.items():
        if "ok" in answer:
            described = cast("dict[str, JsonValue]", answer["ok"])
            made = rebuild(cast(Group, found.group), PluginSpec(found.name), preset, described)
            if made.name != found.name:
                raise UsageError(f"it is registered as {found.name!r}, and its class calls itself {made.name!r}")
            works = True
    if not works:
        first = next(iter(found.presets.values()), {})
        raise UsageError(str(first.get("error", f"{found.name} cannot be used")))
    return found


def _write(path: Path, manifest: Manifest) -> None:
    """Write a manifest in one step, for its owner alone."""
    content = manifest.model_dump_json(indent=1).encode()
    if len(content) > environments.MANIFEST_BYTES:
        raise UsageError(f"the plug-ins describe themselves in more than {environments.MANIFEST_BYTES >> 20} MiB")
    write_atomically(path, content, mode=0o600)
