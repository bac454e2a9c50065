"""The mark of folders that can be made again, after the Cache Directory Tagging Specification (bford.info/cachedir)."""

from __future__ import annotations

from pathlib import Path

from bench.results.atomic_file import write_atomically

NAME = "CACHEDIR.TAG"
CONTENT = b"""Signature: 8a477f597d28d172789f06886806bc55
# Veil Bench makes what lies here again when it is missing; it may hold pixels of private images.
# Backup programs may leave the folder out. `bench clean` removes what is in it.
"""


def tag(folder: Path) -> None:
    """Mark a folder, unless it is marked."""
    if not (folder / NAME).exists():
        write_atomically(folder / NAME, CONTENT)


def tagged(folder: Path) -> bool:
    """Whether a folder carries our mark; another program's does not count."""
    try:
        return (folder / NAME).read_bytes() == CONTENT
    except OSError:
        return False
