"""Errors of disks: which exceptions are, and their texts for users.

Engines must tell the two apart: on a machine whose disk is full, every job fails at once, and such
a machine would soon have taken, and failed, all jobs that there are.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NUMBERS = frozenset(
    number
    for name in ("ENOSPC", "EDQUOT", "EROFS", "EIO", "ESTALE")
    if (number := getattr(errno, name, None)) is not None
)
_NUMPY = re.compile(r"[0-9]+ requested and [0-9]+ written")  # it gives no number
_RUST = re.compile(rf"\(os error ({'|'.join(map(str, sorted(_NUMBERS)))})\)")  # of safetensors, as text


def is_disk_failure(error: BaseException) -> bool:
    """True if a disk caused an exception or its cause."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if isinstance(found, OSError) and (found.errno in _NUMBERS or _NUMPY.fullmatch(str(found))):
            return True
        if type(found).__name__ == "SafetensorError" and _RUST.search(str(found)):
            return True
        found = found.__cause__ or found.__context__
    return False


FULL = frozenset(number for name in ("ENOSPC", "EDQUOT") if (number := getattr(errno, name, None)) is not None)

OF_WRITING = FULL | {errno.EROFS}
"""Errors that reading cannot raise."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Add a note with the cause to an OSError of the block."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and why(error) is None:
            error.add_note(unwritable(path, error))
        raise


def why(error: BaseException) -> str | None:
    """The note of `writing`; None if there is none."""
    return next((note for note in getattr(error, "__notes__", ()) if note.startswith("cannot write ")), None)


def unwritable(path: Path, error: OSError) -> str:
    """The reason why `path` cannot be written, and a remedy.

    >>> print(unwritable(Path("/dev/null/site"), NotADirectoryError(errno.ENOTDIR, "Not a directory")))
    cannot write /dev/null/site: /dev/null is not a folder; choose another place
    """
    place = _nearest(path, itself=error.errno == errno.ENOTDIR)
    elsewhere = "choose another place"
    if error.errno in FULL:
        found, todo = f"the disk of {place} is full", "free some room (`bench clean` lists what can be made again), or "
        return f"cannot write {path}: {found}; {todo}{elsewhere}"
    if error.errno == errno.EEXIST and path.exists():
        return f"cannot write {path}: it is there already, and is not overwritten; {elsewhere}"
    if not place.is_dir():
        return f"cannot write {path}: {place} is not a folder; {elsewhere}"
    if error.errno == errno.ENOENT and not path.parent.exists():
        return f"cannot write {path}: there is no folder {path.parent}; make it, or {elsewhere}"
    if error.errno == errno.EROFS:
        return f"cannot write {path}: the disk of {place} is read-only; {elsewhere}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"cannot write {path}: no permission to write to {place}; change its permissions, or {elsewhere}"
    return f"cannot write {path}: {error.strerror} (below {place}); {elsewhere}"


def unread(error: BaseException) -> str:
    """The text of a read error, without number and file name.

    >>> unread(FileNotFoundError(errno.ENOENT, "No such file or directory")), unread(ValueError("it is empty"))
    ('there is no such file', 'it is empty')
    """
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    words = {
        errno.ENOENT: "there is no such file", errno.ENOTDIR: "there is no such file", errno.EISDIR: "it is a folder",
        errno.EACCES: "no permission to read it", errno.EPERM: "no permission to read it",
    }  # fmt: skip
    return words.get(error.errno) or str(error.strerror)


def in_words(error: OSError) -> str:
    """The text of an OSError for users, with its file.

    >>> in_words(FileNotFoundError(errno.ENOENT, "No such file or directory", "a.csv")), in_words(OSError("it is wet"))
    ('a.csv: there is no such file', 'it is wet')
    """
    if (note := why(error)) is not None:
        return note
    if error.errno is None or error.filename is None:
        return str(error)
    name = os.fsdecode(error.filename)
    return unwritable(Path(name), error) if error.errno in OF_WRITING else f"{name}: {unread(error)}"


def _nearest(path: Path, *, itself: bool) -> Path:
    """The nearest existing parent of the path, or the path."""
    for place in [path.absolute()] * itself + list(path.absolute().parents):
        try:
            if place.exists():
                return place
        except OSError:  # below a folder that may not be looked into
            continue
    return Path(path.anchor or ".")
