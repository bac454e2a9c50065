"""Folders of files that can be made again, and files beside them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from bench.results.build_folder import UNFINISHED, is_cache, is_unfinished_and_left
from bench.results.store import DATA, MANIFEST, TRAINING

ARTEFACT = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Regenerable:
    """A folder, or a file, that may go.

    Args:
        path: The folder or file.
        size: Bytes in it.
        lock: Held by processes that make or read it; None if they need no lock.
    """

    path: Path
    size: int
    lock: Path | None = None

    def remove(self) -> bool:
        """Remove it; False if somebody is making or reading it."""
        if self.lock is None:
            if self.path.is_dir():
                shutil.rmtree(self.path)
            else:
                self.path.unlink(missing_ok=True)
            return True
        try:
            with FileLock(self.lock, timeout=0):
                shutil.rmtree(self.path)
        except Timeout:
            return False
        return True


def of_store(root: Path) -> Iterator[Regenerable]:
    """The artefacts of a `bench.results.store.Store`, of every kind that carries our mark."""
    for kind in _folders(root):
        if is_cache(kind):
            for path in _folders(kind):
                if path.suffix == TRAINING and ARTEFACT.fullmatch(path.stem):
                    if found := only(path, {each.name for each in path.glob("training-*")}):
                        yield Regenerable(path, found.size, path.with_suffix(".lock"))
                    continue
                if not (ARTEFACT.fullmatch(path.name) or is_unfinished_and_left(path)):
                    continue
                if found := only(path, {MANIFEST, DATA}):
                    made = UNFINISHED.fullmatch(path.name)
                    yield Regenerable(path, found.size, kind / f"{made['key'] if made else path.name}.lock")


def only(path: Path, names: set[str]) -> Regenerable | None:
    """The folder, if it holds plain files of `names` only, or None."""
    files = list(path.iterdir())
    if any(each.is_symlink() or not each.is_file() or each.name not in names for each in files):
        return None
    return Regenerable(path, sum(each.stat().st_size for each in files))


def _folders(root: Path) -> list[Path]:
    if root.is_symlink() or not root.is_dir():
        return []
    return sorted(each for each in root.iterdir() if each.is_dir() and not each.is_symlink())
