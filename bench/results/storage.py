"""Storage of content by name: the interface, and a folder behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.results.atomic_file import make_folder, write_atomically, write_once

PRIVATE = "artefacts/"  # what may hold paths or private rows, for the owner's eyes alone


class Storage(Protocol):
    """Keeps content by name; a name is a relative path with slashes."""

    def read(self, name: str) -> bytes:
        """The content. Raises FileNotFoundError."""

    def write(self, name: str, content: bytes, still: Callable[[], bool] = lambda: True) -> bool:
        """Write in one step; a reader sees old or new content whole.

        `still` is asked at the last moment whether it is still to be put there. Returns whether it was.
        """

    def write_once(self, name: str, content: bytes) -> bool:
        """As `write`, but once: True for the one writer that came first."""

    def holds(self, name: str) -> bool:
        """True if there is something of that name."""

    def remove(self, name: str) -> None:
        """Remove it, if it is there."""

    def names(self, pattern: str) -> Iterator[str]:
        """The names that match a pattern such as `cells/*/*/*.json`, in order."""


@dataclass(frozen=True)
class Folder:
    """A storage on this machine."""

    root: Path

    def read(self, name: str) -> bytes:
        """As in `Storage`."""
        return self._path(name).read_bytes()

    def write(self, name: str, content: bytes, still: Callable[[], bool] = lambda: True) -> bool:
        """As in `Storage`."""
        self._make_private(name)
        return write_atomically(self._path(name), content, still=still)

    def write_once(self, name: str, content: bytes) -> bool:
        """As in `Storage`."""
        self._make_private(name)
        return write_once(self._path(name), content)

    def _make_private(self, name: str) -> None:
        if name.startswith(PRIVATE):
            make_folder(self.root / PRIVATE, mode=0o700)

    def holds(self, name: str) -> bool:
        """As in `Storage`."""
        return self._path(name).exists()

    def remove(self, name: str) -> None:
        """As in `Storage`."""
        self._path(name).unlink(missing_ok=True)

    def names(self, pattern: str) -> Iterator[str]:
        """As in `Storage`."""
        return (path.relative_to(self.root).as_posix() for path in sorted(self.root.glob(pattern)))

    def _path(self, name: str) -> Path:
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"a name must lie inside the results folder, got {name!r}")
        return self.root / name
