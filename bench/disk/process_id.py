"""Names of processes that are unique across machines, and their liveness."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import time
from functools import cache
from pathlib import Path

import psutil

NAME = r"(?P<machine>[0-9a-f]{12})-(?P<process>[0-9]+)-[0-9a-f]{16}"
"""The form of `own_name`: machine, process, random number."""
LEFT_SECONDS = 24 * 3600.0
"""Files of another machine's process that are so old were left behind; only disk space depends on it."""


def own_name() -> str:
    """A new unique name for something that this process makes."""
    return f"{machine()}-{os.getpid()}-{secrets.token_hex(8)}"


def is_gone(name: str) -> bool:
    """True if the name's process was on this machine and ended.

    Nothing is known of a process on another machine, or of a text that is no such name: False.
    """
    found = re.fullmatch(NAME, name)
    return found is not None and found["machine"] == machine() and not _lives(int(found["process"]))


def is_left(path: Path, made_by: str) -> bool:
    """True if the process `made_by` left `path` behind and ended.

    The newest entry of a folder counts.
    """
    if is_gone(made_by):
        return True
    try:
        entries = list(path.iterdir()) if path.is_dir() and not path.is_symlink() else []
        return time.time() - max(each.lstat().st_mtime for each in (path, *entries)) > LEFT_SECONDS
    except OSError:  # it changes meanwhile: then it is in use
        return False


def _lives(process: int) -> bool:
    """True if a process lives and is no zombie."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


@cache
def machine() -> str:
    """12 hex digits for the PID namespace of this boot."""
    try:
        numbered = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # no Linux
        numbered = ""
    return _digits(f"{socket.gethostname()} {numbered} {hardware()}")


@cache
def hardware() -> str:
    """12 hex digits for this boot of the machine, containers included."""
    try:
        return _digits(Path("/proc/sys/kernel/random/boot_id").read_text())
    except OSError:  # no Linux: there the name of the machine has to do
        return _digits(socket.gethostname())


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
