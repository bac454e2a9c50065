"""Authors' repositories, whose committed files are copied beside an adapter.

An adapter is a file of Python around the code of a paper's authors. It states as data (`REPOSITORY`, a literal, which
is read and never run) where the code comes from, for which commit it was written, and which lines it changes.

Only git's objects are read: no filter, hook or fetch that a repository's own settings name is run.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.plugins.spec import UsageError
from bench.wire.text import line

DECLARATION = "REPOSITORY"
COMMIT = re.compile(r"[0-9a-f]{40}")
ADDRESS = re.compile(r"(https?://)(?:[^/@\s]*@)?([\w.-]+(?::\d+)?(?:/[\w.~-]+)+)")
"""An address without user names and passwords, which people keep in their settings."""
POINTER = b"version https://git-lfs.github.com/spec/v1"
POINTER_BYTES = 1024
SHOWN = 5
UNCOUNTED = ("__pycache__", "veil_bench_layer.pth")
"""Names that an environment's digest does not count: a repository's own are left out."""
LINK, MODULE = "120000", "160000"
PLAIN = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
OFFLINE = {
    "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_REPLACE_OBJECTS": "1",
}  # fmt: skip
"""Nothing is fetched, and no object is read in the place of another one."""
PACKAGE = r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])?( ?[=<>!~]=?=? ?[A-Za-z0-9.*+!_-]+,?)*$"
"""A package by name and versions: no option of the installer, no address, and no folder of this machine."""


class _Fixed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Patch(_Fixed):
    """A changed line of the authors' code.

    Args:
        file: Its path in the repository.
        line: Its number in the committed file, from 1.
        before, after: The whole line without its end; `after` may hold several lines.
        why: The reason, for readers of the row.
    """

    file: str
    line: Annotated[int, Field(ge=1)]
    before: str
    after: str
    why: Annotated[str, Field(min_length=1)]


class Declaration(_Fixed):
    """An adapter's word on its repository.

    Args:
        url: Where it is published.
        commit: The adapter was written for it; "" for any.
        licence: Of the code, as the repository states it.
        files: Files and folders (ending in /) that are copied; none for all.
        packages: Installed beside it, by name and versions.
        patches: Lines that are changed in the copy.
    """

    url: str = ""
    commit: Annotated[str, Field(pattern="^([0-9a-f]{40})?$")] = ""
    licence: str = ""
    files: list[str] = []
    packages: list[Annotated[str, Field(pattern=PACKAGE)]] = []
    patches: list[Patch] = []


class Repository(_Fixed):
    """A repository as it was copied.

    Args:
        url: As the adapter states it, or the first remote's; "" if neither does.
        commit: 40 hex digits.
        written_for: The adapter's commit; "" for any.
        licence, patches: As in `Declaration`.
        folder: The copy.
        files: Their number.
    """

    url: str
    commit: str
    written_for: str
    licence: str
    folder: Path
    files: int
    patches: list[Patch]

    @property
    def label(self) -> str:
        """Repository and commit, as records name the origin of its plug-ins."""
        words = [re.sub(r"[^\w.-]+", "-", part, flags=re.ASCII).strip(".-") for part in self.url.split("/")[-2:]]
        return "-".join([*(word for word in words if word), self.commit[:12]])[-100:].lstrip(".-")

    def told(self) -> Iterator[str]:
        """Lines for people: repository, commit, and each patched line."""
        other = f", not {self.written_for[:12]}, for which the adapter was written" if self._other else ""
        licence = f", licence {line(self.licence)}" if self.licence else ""
        yield f"repository: {line(self.url) or 'no address'}, commit {self.commit}{other}{licence}, {self.files} files"
        yield f"patched lines: {len(self.patches) or 'none'}"
        for patch in self.patches:
            yield f"  {line(patch.file)}, line {patch.line} ({line(patch.why)}):"
            yield f"    - {line(patch.before).strip()}"
            yield from (f"    + {line(text).strip()}" for text in patch.after.splitlines())

    @property
    def _other(self) -> bool:
        return self.written_for not in ("", self.commit)


def declared(adapter: Path) -> Declaration | None:
    """The declaration in a file of Python, which is not run.

    None if there is none.

    Raises:
        UsageError: The declaration is no literal, or of another form.
    """
    try:
        tree = ast.parse(adapter.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # of another Python; its own interpreter says what is wrong
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        if not any(isinstance(target, ast.Name) and target.id == DECLARATION for target in targets):
            continue
        assert isinstance(statement, ast.Assign | ast.AnnAssign)
        try:
            return Declaration.model_validate(ast.literal_eval(statement.value or ast.Constant(None)))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise UsageError(f"{DECLARATION} in {adapter.name}: {place or 'it'}: {line(first['msg'])}") from error
        except (ValueError, TypeError, RecursionError, MemoryError) as error:
            raise UsageError(
                f"{DECLARATION} in {adapter.name} must be a literal (a dict of texts, numbers and lists): it is read, "
                "not run"
            ) from error
    return None


def copied(source: Path, said: Declaration, commit: str | None, folder: Path) -> Repository:
    """Copy the committed files of a checkout, with the adapter's patches.

    Args:
        source: A checkout or a git directory, which is only read.
        said: The adapter's declaration.
        commit: What to copy, as git names it; None for what is checked out.
        folder: A new folder.

    Raises:
        UsageError: It is no repository, is at another commit than the adapter's, differs from its commit, or holds
            something else than files.
    """
    git = _Git.of(source)
    head = git.commit("HEAD")
    chosen = head if commit is None else git.commit(commit)
    if commit is None and said.commit and head != said.commit:
        raise UsageError(
            f"{source} is at commit {head[:12]}, and the adapter was written for {said.commit[:12]}: run "
            f"`git -C {source} checkout {said.commit}`, or take what is there by --commit HEAD"
        )
    checked_out = chosen == head and (source / ".git").exists()
    changed, names = list[str](), set[str]()
    for name, mode, content in git.files(chosen, said.files):
        held = _file(source / name) if checked_out else None
        if content.startswith(POINTER) and len(content) <= POINTER_BYTES:
            content = _large(name, content, held)
        elif checked_out and held != content:
            changed.append(name)
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(0o555 if mode == "100755" else 0o444)
        names.add(name)
    if changed:
        more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        raise UsageError(
            f"{', '.join(map(line, changed[:SHOWN]))}{more} differ from commit {chosen[:12]}, as which the code would "
            "be recorded: commit the changes, undo them, or state them as patches of the adapter"
        )
    if not names:
        raise UsageError(f"commit {chosen[:12]} of {source} has none of the adapter's files")
    if foreign := [patch.file for patch in said.patches if patch.file not in names]:
        raise UsageError(f"a patch is for {line(foreign[0])}, which was not copied from commit {chosen[:12]}")
    _apply(said.patches, folder, chosen)
    return Repository(
        url=said.url or git.address(), commit=chosen, written_for=said.commit, licence=said.licence, folder=folder,
        files=len(names), patches=said.patches,
    )  # fmt: skip


def _apply(patches: Sequence[Patch], folder: Path, commit: str) -> None:
    """Change the lines in a copy."""
    texts = dict[Path, list[str]]()
    for patch in patches:
        path = folder / patch.file
        lines = texts.setdefault(path, path.read_bytes().decode("utf-8", "surrogateescape").splitlines(keepends=True))
        found = lines[patch.line - 1] if patch.line <= len(lines) else ""
        if found.rstrip("\r\n") != patch.before:
            raise UsageError(
                f"line {patch.line} of {patch.file} is {line(found.strip())!r} in commit {commit[:12]}, and the patch "
                f"is for {line(patch.before.strip())!r}: it was written for another commit"
            )
        lines[patch.line - 1] = f"{patch.after}\n"
    for path, lines in texts.items():
        path.chmod(0o644)
        path.write_bytes("".join(lines).encode("utf-8", "surrogateescape"))
        path.chmod(0o444)


def _file(path: Path) -> bytes | None:
    """The bytes of a plain file, or None; no link is followed."""
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else None
    except OSError:
        return None


def _large(name: str, pointer: bytes, held: bytes | None) -> bytes:
    """The checkout's file for a pointer of Git LFS."""
    found = re.search(rb"^oid sha256:([0-9a-f]{64})$", pointer, re.MULTILINE)
    if held is None or found is None or hashlib.sha256(held).hexdigest().encode() != found[1]:
        raise UsageError(
            f"{line(name)} is a pointer of Git LFS, and the checkout does not have its file: run `git lfs pull` there, "
            "or name the files that the adapter needs without it"
        )
    return held


@dataclass(frozen=True)
class _Git:
    """A repository's git directory."""

    source: Path
    directory: Path

    @classmethod
    def of(cls, source: Path) -> _Git:
        inner = source / ".git"
        directory = inner if inner.exists() else source
        if not inner.is_file() and not (directory / "HEAD").is_file():
            raise UsageError(f"no git repository: {source} (expected the top folder of a checkout, or a git directory)")
        return cls(source, directory)

    def commit(self, word: str) -> str:
        """The full hash of a commit."""
        found = "" if word.startswith("-") else self._said("rev-parse", "--verify", "--quiet", f"{word}^{{commit}}")
        if COMMIT.fullmatch(found) is None:
            raise UsageError(f"{self.source} has no commit {line(word)!r}; `git -C {self.source} log` lists them")
        return found

    def address(self) -> str:
        """The first remote's address, if it is public in form."""
        found = ADDRESS.fullmatch(self._said("config", "--get", "remote.origin.url"))
        return "" if found is None else f"{found[1]}{found[2]}"

    def files(self, commit: str, wanted: Sequence[str]) -> Iterator[tuple[str, str, bytes]]:
        """Name, mode and bytes of the committed files that are wanted."""
        tree = self._run("ls-tree", "-r", "-z", "--full-tree", commit)
        reader = subprocess.Popen(
            self._command("cat-file", "--batch"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=_variables(),
        )  # fmt: skip
        with reader:
            for entry in filter(None, tree.split(b"\0")):
                words, _, raw = entry.partition(b"\t")
                mode, _, blob = words.decode().split()
                name = os.fsdecode(raw)
                parts = PurePosixPath(name).parts
                if not _is_wanted(name, wanted) or any(part in UNCOUNTED for part in parts) or name.endswith(".pyc"):
                    continue
                if mode in (LINK, MODULE) or {"..", ".git", "/"} & set(parts) or re.search(r"veil_bench-.*info/", name):
                    kind = {LINK: "a link", MODULE: "a submodule"}.get(mode, "of a name that is not copied")
                    raise UsageError(f"{line(name)} is {kind}: name the files that the adapter needs without it")
                yield name, mode, self._blob(reader, name, blob)

    def _blob(self, reader: subprocess.Popen[bytes], name: str, blob: str) -> bytes:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write(f"{blob}\n".encode())
        reader.stdin.flush()
        head = reader.stdout.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise UsageError(
                f"{line(name)} is not in {self.source}, which is a partial clone: clone it whole, or name the files "
                "that the adapter needs without it"
            )
        content = reader.stdout.read(int(head[2]) + 1)[:-1]
        if hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() != blob:
            raise UsageError(f"{line(name)} in {self.source} is damaged: `git fsck` says more")
        return content

    def _command(self, *words: str) -> list[str]:
        return ["git", *PLAIN, f"--git-dir={self.directory}", *words]

    def _said(self, *words: str) -> str:
        return self._run(*words, check=False).decode(errors="replace").strip()

    def _run(self, *words: str, check: bool = True) -> bytes:
        try:
            done = subprocess.run(self._command(*words), capture_output=True, check=False, env=_variables())
        except FileNotFoundError as error:
            raise UsageError("git is not installed: install it (`apt-get install git`)") from error
        if check and done.returncode != 0:
            raise UsageError(f"git cannot read {self.source}: {line(done.stderr.decode(errors='replace').strip())}")
        return done.stdout


def _variables() -> dict[str, str]:
    """This process's variables, without those that lead git elsewhere."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("GIT_")}, **OFFLINE}


def _is_wanted(name: str, wanted: Sequence[str]) -> bool:
    return not wanted or any(name == each or (each.endswith("/") and name.startswith(each)) for each in wanted)
