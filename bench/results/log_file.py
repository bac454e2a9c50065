"""The digest at the end of a log, which reveals changes."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from bench.disk.atomic_file import read_plain
from bench.disk.disk_errors import unread

LINE = b"# sha256 of all above: "
LENGTH = len(LINE) + 64 + 1


def close(path: Path, handle: int) -> None:
    """Write the digest of a log to its end, and close it."""
    try:
        if os.fstat(handle).st_size and path.is_file():
            content = path.read_bytes()
            start = b"" if content.endswith(b"\n") else b"\n"
            os.write(handle, start + LINE + hashlib.sha256(content + start).hexdigest().encode() + b"\n")
    except OSError:  # a full disk costs the digest, and not the figures
        pass
    finally:
        os.close(handle)


def last_words(path: Path) -> str:
    """The last line of a log, without an exception's class.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.log")
    ...     _ = path.write_text("Traceback ...\\nbench.types.NotApplicable: 2 people, k is 5: take a smaller k\\n")
    ...     last_words(path)
    '2 people, k is 5: take a smaller k'
    """
    last = next((each.strip() for each in reversed(lines(path)) if each.strip()), "")
    return re.sub(r"^(?:\w+\.)*[A-Z]\w+: ", "", last)


def lines(path: Path) -> list[str]:
    """A log's lines without its digest; none if unreadable."""
    try:
        return read_plain(path).partition(b"\n" + LINE)[0].decode(errors="replace").splitlines()
    except OSError:
        return []


def problem(path: Path, *, sealed: bool) -> str | None:
    """The change of a log since it was written, or None.

    Args:
        path: The log.
        sealed: Whether it must end with its digest; logs of earlier versions have none.
    """
    try:
        content = read_plain(path)
    except OSError as error:
        return unread(error)
    above, last = content[:-LENGTH], content[-LENGTH:]
    if not last.startswith(LINE):
        reason = "it does not end with its digest: its job was killed (the same run again adds it), or it was altered"
        return reason if sealed and content else None
    if last[len(LINE) :] != hashlib.sha256(above).hexdigest().encode() + b"\n":
        return "it was altered since it was written: its digest is another"
    return None
