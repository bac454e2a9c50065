"""Folder through which a room and the judge exchange files.

The judge writes `in`; the room writes its answers into `out`, and checkpoints of a training into `kept`.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.checkpoint import FILE, MOST_BYTES
from bench.disk import process_id
from bench.disk.atomic_file import make_folder
from bench.wire.tensor_file import TensorsError, unpack_tensors


def new_folder(parent: Path) -> tuple[Path, int]:
    """Make a locked folder with `in`, `out` and `kept`; remove unused ones."""
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _nobody_else_makes(parent):
        _remove_unused(parent)
        folder = Path(tempfile.mkdtemp(prefix="room-", dir=parent))
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    for name in ("in", "out", "kept"):
        (folder / name).mkdir(mode=0o700)
    return folder, lock


def remove_unused(parent: Path) -> None:
    """Remove the folders of rooms whose judge was killed."""
    if parent.is_dir():
        with _nobody_else_makes(parent):
            _remove_unused(parent)


@contextlib.contextmanager
def _nobody_else_makes(parent: Path) -> Iterator[None]:
    """Lock the parent folder, so that an unlocked room is abandoned."""
    whole = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(whole, fcntl.LOCK_EX)
        yield
    finally:
        os.close(whole)


def _remove_unused(parent: Path) -> None:
    for folder in parent.iterdir():
        try:
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            remove(folder)  # its judge was killed before it was locked
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(folder)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


def remove(folder: Path) -> None:
    """Remove a folder: exchanged files first, the lock last.

    What cannot be removed (files of a network that somebody still has open) goes with the next room that is made.
    """
    for each in (folder / "in", folder / "out", folder / "kept", folder):
        with contextlib.suppress(OSError):
            _remove(each)


def _remove(folder: Path) -> None:
    """Remove a folder of any depth by moving inner folders up."""
    if not folder.is_dir():
        return
    folder.chmod(0o700)
    names = (f"{secrets.token_hex(16)}-{number}" for number in itertools.count())
    while inside := list(folder.iterdir()):
        for path in inside:
            if path.is_symlink() or not path.is_dir():
                path.unlink()
                continue
            path.chmod(0o700)
            for inner in list(path.iterdir()):
                if inner.is_dir() and not inner.is_symlink():
                    inner.chmod(0o700)  # else it may not be moved
                inner.rename(folder / next(names))
            path.rmdir()
    folder.rmdir()


@dataclass(frozen=True)
class KeptTraining:
    """Storage of a fit's training checkpoints on the judge's side.

    Args:
        folder: It; made with the first file. Nothing that a room could still change stands there.
    """

    folder: Path

    def hand_over(self, room: Path) -> None:
        """Copy what was kept into the folder of a room."""
        if self.folder.is_dir():
            for file in self.folder.iterdir():
                if FILE.fullmatch(file.name):
                    shutil.copyfile(file, room / file.name)

    def take(self, room: Path) -> None:
        """Take what the room has finished writing.

        Raises:
            TensorsError: It is no plain file of tensors.
        """
        with os.scandir(room) as entries:
            finished = [entry for entry in entries if FILE.fullmatch(entry.name)]
        for entry in finished:
            status = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                raise TensorsError(f"a training is kept in a plain file of at most {MOST_BYTES >> 30} GiB")
            make_folder(self.folder, mode=0o700)
            mine = self.folder / f"{entry.name}.new-{process_id.own_name()}"
            shutil.move(entry.path, mine)
            try:
                unpack_tensors(mine, MOST_BYTES)
            except TensorsError:
                mine.unlink()
                raise
            mine.replace(self.folder / entry.name)
