"""Heartbeats: files that are touched while somebody works. Only the file system's own clock says how old one is.

Machines that share a folder need not agree on the time: a file's time is set and compared by whoever keeps the file.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.results import process_id

BEAT_SECONDS = 10.0
LEFT_SECONDS = 600.0
"""After so long without a beat what is unfinished counts as left behind; nothing but a disk's space hangs on it."""


def file_time(folder: Path) -> float:
    """What the file system of a folder says that the time is, in seconds; the folder must be there."""
    with tempfile.TemporaryFile(dir=folder) as nameless:  # so a kill leaves nothing of it
        return os.fstat(nameless.fileno()).st_mtime


def beat(path: Path) -> None:
    """Give a file the present time of its file system. Raises FileNotFoundError where it is gone."""
    os.utime(path)


@contextmanager
def beating(path: Path) -> Iterator[None]:
    """Make a file and touch it while the block runs; it goes at the end."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with touched(path, BEAT_SECONDS):
            yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


@contextmanager
def touched(path: Path, seconds: float) -> Iterator[None]:
    """Touch a file that is there every so many seconds while the block runs, from a thread of its own."""
    over = threading.Event()

    def keep() -> None:
        while not over.wait(seconds):
            with contextlib.suppress(OSError):  # gone, or out of reach for a while: then others may think us gone
                beat(path)

    thread = threading.Thread(target=keep, daemon=True, name=f"beats of {path.name}")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def is_left(path: Path, made_by: str) -> bool:
    """Whether what lies at `path` was left by a maker that is gone: it surely ended, or nothing beats there any more.

    Args:
        path: A file, or a folder, whose newest entry counts.
        made_by: As `process_id.own_name` named it.
    """
    if process_id.is_gone(made_by):
        return True
    try:
        newest = max([path.lstat().st_mtime, *(each.lstat().st_mtime for each in _entries(path))])
        return file_time(path.parent) - newest > LEFT_SECONDS
    except OSError:  # it changes under our eyes, or cannot be told: then it is somebody's
        return False


def _entries(path: Path) -> list[Path]:
    return list(path.iterdir()) if path.is_dir() and not path.is_symlink() else []
