"""Files that are there whole or not at all, also after a power cut."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
from collections.abc import Callable
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644, durable: bool = True) -> None:
    """Put `content` at `path` so that a reader, or a crash, sees either the old file or the new one.

    The file and the folders that name it are on disk when this returns, unless `durable` is False: then a power cut may
    leave it empty, which is for files that can be made again, and whose maker looks whether they are whole. The user's
    umask narrows `mode`.
    """
    _put(path, content, mode, os.replace, durable=durable)


def write_once(path: Path, content: bytes, *, mode: int) -> None:
    """As `write_atomically`, but a file that is there stays as it is."""
    with contextlib.suppress(FileExistsError):
        _put(path, content, mode, os.link)


def remove_unfinished(path: Path) -> None:
    """Remove what writers of `path` left that were killed on the way: temporary files that nobody holds."""
    for left in path.parent.glob(f"{glob.escape(_prefix(path))}{'[0-9a-f]' * 16}"):
        with contextlib.suppress(OSError):  # somebody else was quicker, or it is being written just now
            handle = os.open(left, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            finally:
                os.close(handle)


def _put(path: Path, content: bytes, mode: int, move: Callable[[Path, Path], None], *, durable: bool = True) -> None:
    make_folder(path.parent)
    remove_unfinished(path)
    handle, temporary = _held(path, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
            move(temporary, path)  # while it is held: nobody takes it for a dead writer's
    finally:
        temporary.unlink(missing_ok=True)
    if durable:
        sync(path.parent)


def _held(path: Path, mode: int) -> tuple[int, Path]:
    """A new temporary file for `path`, open and locked, so that `remove_unfinished` knows that somebody is writing."""
    while True:
        temporary = path.with_name(f"{_prefix(path)}{secrets.token_hex(8)}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with contextlib.suppress(OSError):  # a file system without locks: there nothing is ever removed
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, temporary
        os.close(handle)  # it was removed before it was locked


def _prefix(path: Path) -> str:
    return f".{path.name[:100]}."


def write_new(path: Path, content: bytes, *, mode: int) -> None:
    """A new file, whole and on disk when this returns. Raises FileExistsError where there is one."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink()
        raise
    sync(path.parent)


def make_folder(path: Path, *, mode: int = 0o777) -> None:
    """Make a folder and those above it, if they are missing, with their names on disk; `mode` is that of the last."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True, mode=mode)
    sync(path.parent)


def sync(path: Path) -> None:
    """Bring a file's content, or the names in a folder, to the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders, and keeps their names by itself
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
