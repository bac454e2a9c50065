"""Files that are not what their names say."""

from __future__ import annotations

import stat
from pathlib import Path


def impostor(path: Path) -> str | None:
    """What a file is instead of data ("an HTML page, ..."), judged by its kind and first bytes; None if it may be data.

    Nothing but a file, or a link to a file, is opened: reading a pipe would wait for ever.

    Raises:
        OSError: There is nothing there, or it may not be read.
    """
    kind = path.stat().st_mode
    if stat.S_ISDIR(kind):
        return "a folder"
    if not stat.S_ISREG(kind):
        return "a pipe, socket or device"
    with path.open("rb") as file:
        head = file.read(512)
    if not head:
        return "an empty file"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")) or b"<html" in start:
        return "an HTML page, the trace of a failed download or a login page"
    if start.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not the file itself (run `git lfs pull`)"
    return None
