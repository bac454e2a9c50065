"""Kinds of files that stand where data should be."""

from __future__ import annotations

import stat
from pathlib import Path


def impostor(path: Path) -> str | None:
    """The kind of a file that is no data, else None.

    Pipes and devices are not opened: reading them could block. Raises OSError for what is missing or forbidden.
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
