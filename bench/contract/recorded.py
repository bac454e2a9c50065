"""Releases that exist already: a folder that another tool wrote."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from bench.disk.system_names import system_names

LINKS = "links.csv"
FURTHER = "keys"
"""The sub-folder of further releases of the same rows, each in a folder of its own."""
DIGITS = 16
BY_ANOTHER_TOOL = "another tool's: she makes no release of her own, and an attack that needs some does not apply"
"""Eve's knowledge of the scheme of such releases."""


@dataclass(frozen=True)
class Recorded:
    """A folder of releases (`bench.data.release_folder` reads it).

    Args:
        folder: The first release, and below `FURTHER` the others.
        links: What the judge alone may know of all of them: a file of links, or a folder with the tables of `folder`;
            None: they are in `folder`.
        sha256: The first `DIGITS` hex digits of the digest over all files; "" leaves them unchecked.
    """

    ABOUT: ClassVar[str] = "release.json"
    REFUSAL: ClassVar[str] = (
        "the rows were released by another tool, and others cannot be released here: what needs releases of its own "
        "does not apply, and the remaining figures show less than an attacker with that tool might find out"
    )

    folder: Path
    links: Path | None
    sha256: str

    @classmethod
    def about(cls, place: Path) -> Mapping[str, Any]:
        """The content of release.json in a folder; empty without one.

        Raises:
            ValueError: It is no JSON object.
        """
        path = place / cls.ABOUT
        if not path.is_file():
            return {}
        try:
            found = json.loads(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise ValueError(f"{cls.ABOUT} must be JSON: {type(error).__name__}") from None
        if not isinstance(found, dict):
            raise ValueError(f"{cls.ABOUT} must hold an object, got {type(found).__name__}")
        return found

    def places(self) -> list[Path]:
        """The folder of each release, in order.

        Raises ValueError if there is none.
        """
        if not self.folder.is_dir():
            raise ValueError(f"path must name a folder of released rows, and {self.folder} is none")
        further = self.folder / FURTHER
        return [self.folder, *(path for path in _seen(further) if path.is_dir())]

    def tables(self, place: Path, name: str) -> Path | None:
        """The table of that name of a release; None if absent."""
        if self.links is not None and name == LINKS and place == self.folder and self.links.is_file():
            return self.links
        kept = self.links / place.relative_to(self.folder) if self.links is not None and self.links.is_dir() else place
        return next((each / name for each in (kept, place) if (each / name).is_file()), None)

    def contents(self) -> Mapping[str, str]:
        """The SHA-256 of every present file, by its name below the folder.

        Raises ValueError for links that lead out of the folder, or no file.
        """
        parts = [self.folder, *([] if self.links is None else [self.links])]
        return _contents(tuple(line for part in parts for line in _states(part)))

    def digest(self) -> str:
        """The digest of all files that are there now. Raises as `contents`."""
        lines = "".join(f"{name}\0{content}\n" for name, content in self.contents().items())
        return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()[:DIGITS]


def _seen(folder: Path) -> list[Path]:
    """A folder's paths in order, without those that systems make."""
    names = {path.name: path for path in folder.iterdir()} if folder.is_dir() else {}
    return [names[name] for name in sorted(names.keys() - system_names(names.keys()))]


def _below(folder: Path) -> Iterator[Path]:
    """All that lies below a folder; links to folders are not entered."""
    for path in _seen(folder):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)


def _states(part: Path) -> Iterator[tuple[str, str, int, int]]:
    """Name, place, bytes and time of change of each file below `part`."""
    top = Path(os.path.realpath(part))
    inside = top if top.is_dir() else top.parent
    for path in [top] if top.is_file() else sorted(_below(top)):
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(inside):
            raise ValueError("a name in the folder is a link that leads out of it: copy the file to its place")
        if not real.exists():
            raise ValueError("a name in the folder is a link that leads nowhere: remove it")
        if real.is_dir():
            continue
        if not real.is_file():
            raise ValueError("the folder holds a pipe, a socket or a device: remove it")
        status = real.stat()
        name = LINKS if top.is_file() else path.relative_to(top).as_posix()
        yield name, str(real), status.st_size, status.st_mtime_ns


@lru_cache(maxsize=8)
def _contents(states: tuple[tuple[str, str, int, int], ...]) -> Mapping[str, str]:
    if not states:
        raise ValueError("the folder holds no file: expected images, release.npy or release.safetensors")
    found = {}
    for name, place, _, _ in states:
        with open(place, "rb") as file:  # noqa: PTH123
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
