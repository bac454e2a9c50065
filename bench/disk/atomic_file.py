"""Files that appear whole or not at all, even after power cuts."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.disk import process_id
from bench.disk.disk_errors import writing
from bench.disk.process_id import is_left


def write_atomically(
    path: Path, content: bytes, *, mode: int = 0o644, still: Callable[[], bool] = lambda: True, sweep: bool = True,
    durable: bool = True,
) -> bool:  # fmt: skip
    """Write a file in one step: readers see old or new.

    The file and the folders that name it are on disk when this returns, unless `durable` is False: then a power cut may
    leave it empty, which is for files that can be made again. The user's umask narrows the `mode` of a new file.
    `still` is asked when all but the name is written; False stops, and is returned. `sweep` looks for files of killed
    writers, which reads the whole folder.
    """
    return _put(path, content, mode, os.replace, still=still, sweep=sweep, durable=durable)


def write_once(path: Path, content: bytes, *, mode: int = 0o644, sweep: bool = True) -> bool:
    """As `write_atomically`, for a new file; True if there was none."""
    try:
        return _put(path, content, mode, os.link, still=lambda: True, sweep=sweep, durable=True)
    except OSError:  # some file systems have no word of their own for a name that is taken
        if not path.exists():
            raise
        return False


def remove_unfinished(path: Path) -> None:
    """Remove temporary files of `path` whose writers were killed."""
    with contextlib.suppress(FileNotFoundError):
        for left in path.parent.iterdir():
            if (
                left.name.startswith(start := _prefix(path))
                and _MADE.fullmatch(made_by := left.name.removeprefix(start))
                and is_left(left, made_by)
            ):
                with contextlib.suppress(OSError):  # somebody else was quicker
                    left.unlink()


_MADE = re.compile(f"{process_id.NAME}|[0-9a-f]{{16}}")  # the latter by earlier versions


def _put(
    path: Path, content: bytes, mode: int, move: Callable[[Path, Path], None], *, still: Callable[[], bool],
    sweep: bool, durable: bool,
) -> bool:  # fmt: skip
    make_folder(path.parent)
    if sweep:
        remove_unfinished(path)
    for last in (False, True):
        temporary = path.with_name(f"{_prefix(path)}{process_id.own_name()}")
        try:
            with writing(path):
                _write(temporary, content, mode, durable=durable)
                if not still():
                    return False
                move(temporary, path)
            break
        except FileNotFoundError:
            # A process stopped for long is taken for dead, and finds its file gone; some file systems say so of a
            # name that was moved, where the answer to the move was lost.
            if last or temporary.exists() or not path.parent.is_dir():
                raise
        except FileExistsError:
            if not _is_linked(temporary):
                raise
            break  # the answer to the link was lost, and it was asked for again
        finally:
            with contextlib.suppress(OSError):  # what kept it from being written may keep it from being removed
                temporary.unlink(missing_ok=True)
    if durable:
        sync(path.parent)
    return True


def _is_linked(temporary: Path) -> bool:
    with contextlib.suppress(OSError):
        return temporary.stat().st_nlink > 1
    return False


def _prefix(path: Path) -> str:
    return f".{path.name[:100]}."


def write_new(path: Path, content: bytes, *, mode: int) -> None:
    """Write a new file to the disk. Raises FileExistsError."""
    with writing(path):
        _write(path, content, mode, durable=True)
        sync(path.parent)


def _write(path: Path, content: bytes, mode: int, *, durable: bool) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def make_folder(path: Path, *, mode: int = 0o777) -> None:
    """Make a folder and its parents, on disk; `mode` is the last's."""
    with writing(path):
        if path.is_dir():
            return
        make_folder(path.parent)
        try:
            path.mkdir(exist_ok=True, mode=mode)
        except FileExistsError as error:  # it is no folder; one that somebody else has made by now is welcome
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)) from error
        sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file's content, or a folder's names, to the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders, and keeps their names by itself
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


MOST_READ = 1 << 30
"""Most bytes of a file that is read whole."""


def read_plain(path: Path, most: int = MOST_READ) -> bytes:
    """The content of a plain file, without waiting for a pipe.

    Raises:
        FileNotFoundError: There is none.
        OSError: It is no plain file, takes more than `most` bytes, or may not be read.
    """
    _check_plain(path, path.stat(), most)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        _check_plain(path, os.fstat(handle), most)  # something else may lie there by now
        return file.read(most + 1)


def _check_plain(path: Path, status: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "a thing of an unknown kind")
        raise OSError(errno.EINVAL, f"expected a file, found {kind}", str(path))
    if status.st_size > most:
        raise OSError(errno.EFBIG, f"it takes {status.st_size} bytes, and at most {most} are read", str(path))


KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}  # fmt: skip
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
        return read_plain(self._path(name))

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
