"""The folder in which a room and the judge hand things over, and the lock that says that somebody uses it.

The judge writes `in`; the room writes its answers into `out`, and into `kept` how far a training has come.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path


def new_folder(parent: Path) -> tuple[Path, int]:
    """A new folder with `in`, `out` and `kept`, and the lock that says that somebody uses it; those nobody uses go."""
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
    """Remove the folders of rooms whose judge was killed: what had been handed over may be private rows."""
    if parent.is_dir():
        with _nobody_else_makes(parent):
            _remove_unused(parent)


@contextlib.contextmanager
def _nobody_else_makes(parent: Path) -> Iterator[None]:
    """Hold the folder of all rooms, so that a room without a lock is one that nobody will ever lock."""
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
    """Remove a folder, what was handed over first, the lock last; a plug-in may have filled it however it liked.

    What cannot be removed (files of a network that somebody still has open) goes with the next room that is made.
    """
    for each in (folder / "in", folder / "out", folder / "kept", folder):
        with contextlib.suppress(OSError):
            _remove(each)


def _remove(folder: Path) -> None:
    """Remove a folder, however deep: what lies in a folder within it is moved up, so that no path grows."""
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
