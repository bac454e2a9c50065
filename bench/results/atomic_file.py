"""Files that are there whole or not at all, also after a power cut."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Put `content` at `path` so that a reader, or a crash, sees either the old file or the new one.

    The file and the folders that name it are on disk when this returns. The user's umask narrows `mode`.
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}")
    write_new(temporary, content, mode=mode)
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


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
