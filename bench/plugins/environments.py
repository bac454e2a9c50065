"""Environments of plug-ins, whose interpreters only rooms start.

The judge reads an environment's manifest, which `bench plugin add` wrote, and imports nothing of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from bench import image_root, room_side, room_types
from bench.contract.evaluator import NAME
from bench.plugins.author_repository import Repository
from bench.plugins.groups import SAID
from bench.plugins.interview import interview
from bench.plugins.spec import PluginSpec, UsageError, annotated, convert, did_you_mean
from bench.sandbox import python as own_python
from bench.sandbox import remedy, why_not
from bench.types import Parameter
from bench.wire.message import WireError, decode
from bench.wire.text import Name, Text, line

VARIABLE = "BENCH_PLUGINS"
"""Environment variable: the folder of all environments."""
MANIFEST = "manifest.json"
MANIFEST_BYTES = 1 << 22
LONGEST_NAME = 60
ROOM_SIDE = Path(room_side.__file__)
ROOM_TYPES = Path(room_types.__file__)
SITES = ("lib/*/site-packages", "lib/*/dist-packages", "local/lib/*/dist-packages", "site-packages")
SHOWN = ("bin", "lib", "lib32", "lib64", "libexec", "site-packages", "lib_pypy", "lib-python", "pyvenv.cfg")
"""Parts of an interpreter's folder that its rooms see."""
MOST_BYTES = 1 << 36
LAYER = "veil_bench_layer.pth"
OURS = re.compile(r"veil_bench-[^/]*\.dist-info")
"""The folder that stands for the benchmark's own metadata."""


class AddedPlugin(BaseModel):
    """A plug-in as its room described it: a stranger's word."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    group: Literal["methods", "attacks"]
    name: Name
    target: Annotated[str, Field(max_length=1000)]
    origin: Name
    version: Name = ""
    about: Name = ""
    text: Text = ""
    kinds: Annotated[list[tuple[Name, Name]], Field(max_length=200)] = []
    presets: dict[Name, dict[str, JsonValue]] = {}

    def values(self, spec: PluginSpec) -> dict[str, Parameter]:
        """Parameters of a spec as the class takes them.

        Raises:
            UsageError: The class takes no such parameter or value.
        """
        kinds, given = dict(self.kinds), dict(spec.parameters)
        if spec.argument is not None:
            if not kinds:
                raise UsageError(f"{spec.name} takes no argument, got {spec.argument!r}")
            given[next(iter(kinds))] = spec.argument
        if unknown := [name for name in given if name not in kinds]:
            raise UsageError(f"{spec.name} has no parameter {unknown[0]!r}; {did_you_mean(unknown[0], kinds)}")
        hints = {name: self._hint(name, kinds[name]) for name in given}
        return {
            name: value if hints[name] is None else convert(value, hints[name], f"{spec.name}[{name}]")
            for name, value in given.items()
        }

    def _hint(self, name: str, written: str) -> Any:
        """The type of a field by its annotation or default, or None."""
        if (hint := annotated(written)) is not None:
            return hint
        for answer in self.presets.values():
            described = answer.get("ok")
            usual = described.get("defaults") if isinstance(described, dict) else None
            if isinstance(usual, dict) and isinstance(usual.get(name), int | float | str):
                return type(usual[name])
        return None


def copies(files: Sequence[Path], repository: Repository | None) -> list[Path]:
    """Files and folders of an environment that were copied from elsewhere."""
    return [*files, *([] if repository is None else [repository.folder])]


class Manifest(BaseModel):
    """An environment as it was added.

    Args:
        requirements: What the user asked for.
        interpreter: Its path.
        root: The unpacked image that is the root of its rooms; None for this machine's. All of it counts in the digest.
        hidden: Folders of the image with data sets, which its rooms see empty.
        shown: Folders and files that its rooms see, chosen before any of its packages was there.
        files: Its files of Python.
        repository: The authors' code that a file of it runs, copied beside it; None for none.
        shared: Its interpreter also finds the benchmark's own packages.
        python: Implementation and version of the interpreter.
        built: Where the packages' own code ran when they were installed; "not" if nothing was installed.
        digest: 16 hex digits for the bytes of its packages and files, the same on every machine.
        stamp: A hash of the names, sizes and times of the same files.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    manifest: Literal[1] = 1
    requirements: list[str]
    interpreter: Path
    folder: Path | None
    root: Path | None = None
    hidden: list[Path] = []
    shown: list[Path]
    sites: list[Path]
    files: list[Path]
    repository: Repository | None = None
    shared: bool
    python: Name
    built: Literal["sandbox", "processes", "not"]
    added: str
    digest: Annotated[str, Field(pattern="[0-9a-f]{16}")]
    stamp: str
    plugins: list[AddedPlugin]

    @property
    def counted(self) -> list[Path]:
        """Files and folders in its digest, beside an image."""
        return [*self.sites, *self.copies]

    @property
    def copies(self) -> list[Path]:
        """Files and folders that were copied from elsewhere."""
        return copies(self.files, self.repository)

    @property
    def made(self) -> bool | None:
        """If it is shared; None for an interpreter used as it is."""
        return self.shared if self.folder is not None and self.interpreter.is_relative_to(self.folder) else None


class Environment(BaseModel):
    """An environment: its name and its manifest."""

    model_config = ConfigDict(frozen=True)
    name: str
    manifest: Manifest

    def __hash__(self) -> int:
        return hash((self.name, self.manifest.digest))

    @property
    def _shared(self) -> tuple[Path, ...]:
        """The benchmark's own Python and packages, if its interpreter finds them."""
        return tuple(own_python()) if self.manifest.shared else ()

    @property
    def interpreter_files(self) -> tuple[Path, ...]:
        """Files that its sandboxes show beside the system's and parameters' files."""
        return (*self.manifest.shown, *self.manifest.copies, ROOM_SIDE, ROOM_TYPES, *self._shared)

    @property
    def package_folders(self) -> tuple[Path, ...]:
        """Folders in which its rooms may find packages."""
        prefixes = {path.parent for path in self.manifest.shown}
        return (*self.manifest.sites, *sorted(prefixes), *self._shared)

    def command(self, task: Mapping[str, object]) -> list[str]:
        """The command of a room that does `task`."""
        return [str(self.manifest.interpreter), "-I", "-B", "-u", str(ROOM_SIDE), json.dumps(task)]

    def check_confined(self, *, sandbox: bool) -> None:
        """Raise UsageError for an image without a sandbox."""
        if self.manifest.root is not None and not sandbox:
            what = "use --isolation sandbox" if why_not() is None else remedy()
            raise UsageError(f"{self.name} has an image, which is the root of a sandbox: {what}")

    def plugin(self, group: str, name: str) -> AddedPlugin:
        """One of its plug-ins."""
        return next(each for each in self.manifest.plugins if (each.group, each.name) == (group, name))

    def task(self, group: str, spec: PluginSpec, preset: str) -> dict[str, object]:
        """The part of a task that names a plug-in."""
        plugin = self.plugin(group, spec.name)
        return {
            "group": group, "name": spec.name, "target": plugin.target, "spec": str(spec), "preset": preset,
            "values": plugin.values(spec), "words": SAID,
        }  # fmt: skip

    def described(self, group: str, spec: PluginSpec, preset: str, files: Sequence[Path]) -> Mapping[str, JsonValue]:
        """A plug-in's description: from the manifest or, with parameters, a room.

        Raises:
            UsageError: It cannot be built so, or the environment changed since it was added.
        """
        self.check()
        if spec == PluginSpec(spec.name) and preset in (presets := self.plugin(group, spec.name).presets):
            return _said(presets[preset])
        task = {**self.task(group, spec, preset), "mode": "describe"}
        return _said({"ok": ask(self, task, spec.shown, files)})

    def check(self) -> None:
        """Raise UsageError if its files changed since it was added."""
        _unchanged(self)


def _said(answer: JsonValue) -> Mapping[str, JsonValue]:
    if not isinstance(answer, dict):
        raise UsageError("a room described a plug-in by no object")
    if "error" in answer:
        raise UsageError(str(answer["error"]))
    found = answer.get("ok")
    if not isinstance(found, dict):
        raise UsageError("a room described a plug-in by no object")
    return found


def ask(environment: Environment, task: Mapping[str, object], about: str, files: Sequence[Path] = ()) -> JsonValue:
    """The answer of a room of the environment to one task."""
    environment.check_confined(sandbox=why_not() is None)
    return interview(
        lambda answer: environment.command({**task, "answer": answer}), about, files=files,
        interpreter=environment.interpreter_files, root=environment.manifest.root,
    )  # fmt: skip


@cache
def _unchanged(environment: Environment) -> None:
    manifest = environment.manifest
    places, root = manifest.counted, manifest.root
    there = manifest.interpreter.exists() if root is None else root.is_dir()
    if not there or (
        stamp(places, manifest.made, root) != manifest.stamp
        and digest(places, manifest.python, manifest.made, root) != manifest.digest
    ):
        raise UsageError(
            f"the environment {environment.name} is not as it was when it was added: run `bench plugin add` again "
            f"({' '.join(manifest.requirements) or manifest.interpreter})"
        )


def root() -> Path:
    """The folder of all environments."""
    return Path(os.environ.get(VARIABLE) or platformdirs.user_data_path("veil-bench") / "plugins").absolute()


def known() -> dict[str, Environment | UsageError]:
    """Every environment by name, or why it cannot be used."""
    found: dict[str, Environment | UsageError] = {}
    for place in sorted(root().glob(f"*/{MANIFEST}")):
        try:
            found[place.parent.name] = read(place.parent.name)
        except UsageError as error:
            found[place.parent.name] = error
    return found


def read(name: str) -> Environment:
    """The environment of that name. Raises UsageError without a manifest."""
    place = root() / valid_name(name) / MANIFEST
    if not place.is_file():
        raise UsageError(f"no plug-ins were added as {name!r}; `bench plugin list` shows those that were")
    again = f"the manifest of {name} cannot be used: run `bench plugin add` again"
    try:
        with place.open("rb") as file:
            content = file.read(MANIFEST_BYTES + 1)
        if len(content) > MANIFEST_BYTES:
            raise UsageError(again)
        return Environment(name=name, manifest=Manifest.model_validate(decode(content)))
    except (OSError, WireError, ValidationError) as error:
        raise UsageError(again) from error


def valid_name(name: str) -> str:
    """The name of an environment. Raises UsageError for any other text."""
    if NAME.fullmatch(name) is None or len(name) > LONGEST_NAME:
        raise UsageError(
            f"a name must be of a-z, 0-9 and single hyphens, and at most {LONGEST_NAME} long, got {name!r}"
        )
    return name


def packages(prefix: Path) -> list[Path]:
    """The folders with packages of an interpreter's folder."""
    return sorted({path.resolve() for pattern in SITES for path in prefix.glob(pattern) if path.is_dir()})


def parts(prefix: Path) -> list[Path]:
    """Parts of an interpreter's folder that its rooms see; none of /usr."""
    return [] if prefix == Path("/usr") else [prefix / name for name in SHOWN if (prefix / name).exists()]


def stamp(places: Sequence[Path], shared: bool | None, root: Path | None = None) -> str:
    """A hash of the names, sizes and times of all files."""
    whole = hashlib.sha256()
    for name, path in _files(places, shared, root):
        status = path.lstat()
        whole.update(json.dumps([name, status.st_size, status.st_mtime_ns, status.st_ctime_ns]).encode())
    return whole.hexdigest()[:16]


def digest(places: Sequence[Path], python: str, shared: bool | None, root: Path | None = None) -> str:
    """16 hex digits for the content of all files and a version.

    Args:
        places: Files and folders.
        python: The interpreter's version.
        shared: As in `Manifest`; None for an interpreter that is used as it is. There files that Python compiled count
            too, for they can differ from their sources.
        root: An image; the folders that its rooms do not see do not count.
    """
    whole, total = hashlib.sha256(python.encode()), 0
    for name, path in _files(places, shared, root):
        status = path.lstat()
        total += status.st_size
        if not (stat.S_ISREG(status.st_mode) or path.is_symlink()) or total > MOST_BYTES:
            raise UsageError(
                f"an environment must be of plain files of at most {MOST_BYTES >> 30} GiB in all, and {line(name)} is "
                "none"
            )
        if path.is_symlink():
            whole.update(hashlib.sha256(os.fsencode(name) + b"\0" + os.fsencode(path.readlink())).digest())
        else:
            with path.open("rb") as file:
                whole.update(hashlib.sha256(os.fsencode(name)).digest() + hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:16]


def _compiled(path: Path) -> bool:
    """If a file is compiled from a source, which counts."""
    return path.suffix == ".pyc" and path.parent.name == "__pycache__"


def _files(places: Sequence[Path], shared: bool | None, root: Path | None) -> Iterator[tuple[str, Path]]:
    """Every file that counts, by its name within its place."""
    if root is not None:
        yield from image_root.files(root)
    for place in places:
        if not place.is_dir():
            yield place.name, place
            continue
        for folder, inner, names in os.walk(place):
            inner[:] = sorted(name for name in inner if not (shared and OURS.fullmatch(name)))
            links = [name for name in inner if Path(folder, name).is_symlink()]
            for name in sorted([*names, *links]):
                path = Path(folder, name)
                if not (shared and name == LAYER) and not (shared is not None and _compiled(path)):
                    yield path.relative_to(place).as_posix(), path


def forget() -> None:
    """Forget which environments were looked at."""
    _unchanged.cache_clear()
