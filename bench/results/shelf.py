"""What keeps content by name: a folder, and in a file of its own any other place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.results.atomic_file import make_folder, write_atomically

PRIVATE = "artefacts/"  # what may hold paths or private rows, for the owner's eyes alone


class Shelf(Protocol):
    """Keeps content by name; a name is a relative path with slashes."""

    def read(self, name: str) -> bytes:
        """The content. Raises FileNotFoundError."""

    def write(self, name: str, content: bytes) -> None:
        """Put content there in one step: a reader, or a crash, sees the old content or the new."""

    def remove(self, name: str) -> None:
        """Remove it, if it is there."""

    def names(self, pattern: str) -> Iterator[str]:
        """The names that match a pattern such as `cells/*/*/*.json`, in order."""


@dataclass(frozen=True)
class Folder:
    """A shelf on this machine."""

    root: Path

    def read(self, name: str) -> bytes:
        """As in `Shelf`."""
        return self._path(name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        """As in `Shelf`."""
        if name.startswith(PRIVATE):
            make_folder(self.root / PRIVATE, mode=0o700)
        write_atomically(self._path(name), content)

    def remove(self, name: str) -> None:
        """As in `Shelf`."""
        self._path(name).unlink(missing_ok=True)

    def names(self, pattern: str) -> Iterator[str]:
        """As in `Shelf`."""
        return (path.relative_to(self.root).as_posix() for path in sorted(self.root.glob(pattern)))

    def _path(self, name: str) -> Path:
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"a name must lie inside the results folder, got {name!r}")
        return self.root / name
