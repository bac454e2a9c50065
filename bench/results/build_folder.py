"""Folders in which artefacts are built, their lock, and the cache tag.

A build folder's name holds the artefact and the process that makes it, so that the next process can remove the files of
a killed one. The mark follows the Cache Directory Tagging Specification (bford.info/cachedir).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from bench.disk import process_id
from bench.disk.atomic_file import write_atomically
from bench.disk.process_id import is_left
from bench.progress import stage

CACHE_TAG = "CACHEDIR.TAG"
CACHE_TAG_CONTENT = b"""Signature: 8a477f597d28d172789f06886806bc55
# Veil Bench makes what lies here again when it is missing; it may hold pixels of private images.
# Backup programs may leave the folder out. `bench clean` removes what is in it.
"""


def tag_cache(folder: Path) -> None:
    """Mark a folder, unless it is marked."""
    if not (folder / CACHE_TAG).exists():
        write_atomically(folder / CACHE_TAG, CACHE_TAG_CONTENT)


def is_cache(folder: Path) -> bool:
    """True if a folder carries our mark, not another program's."""
    try:
        return (folder / CACHE_TAG).read_bytes() == CACHE_TAG_CONTENT
    except OSError:
        return False


PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.02
UNFINISHED = re.compile(r"\.new-(?P<key>[0-9a-f]{32})-(?P<maker>.+)")


@contextmanager
def begun(folder: Path) -> Iterator[Path]:
    """A new build folder, removed unless it got the artefact's name."""
    sweep(folder)
    building = temporary(folder)
    building.mkdir(mode=0o700)
    try:
        yield building
    finally:
        shutil.rmtree(building, ignore_errors=True)


def temporary(folder: Path) -> Path:
    """A new name beside the folder of an artefact."""
    return folder.with_name(f".new-{folder.name}-{process_id.own_name()}")


def unfinished(folder: Path) -> Iterator[Path]:
    """The folders in which the artefact is being made, or was."""
    return folder.parent.glob(f".new-{folder.name}-*")


def sweep(folder: Path) -> None:
    """Remove build folders of processes that ended before they were done."""
    for left in unfinished(folder):
        if is_unfinished_and_left(left):
            shutil.rmtree(left, ignore_errors=True)


def is_unfinished_and_left(path: Path) -> bool:
    """True for a build folder whose process is gone."""
    found = UNFINISHED.fullmatch(path.name)
    return found is not None and is_left(path, found["maker"])


def is_being_made(folder: Path) -> bool:
    """True if a living process builds the artefact."""
    return any(not is_unfinished_and_left(each) for each in unfinished(folder))


def own_lock(path: Path) -> FileLock:
    """A lock that only this account may take.

    It ends with its process: a soft lock outlives a process that is killed.
    """
    return FileLock(path, mode=0o600, fallback_to_soft=False)


@contextmanager
def locked(lock: Path, busy: Callable[[], bool]) -> Iterator[None]:
    """Hold a lock that saves double work; nothing else depends on it.

    If the file system has no locks, the work is done twice. A lock that stays taken is not waited for unless
    `busy` says that its holder works.
    """
    held = own_lock(lock)
    while True:
        try:
            held.acquire(timeout=PATIENCE_SECONDS, poll_interval=_POLL_SECONDS)
            break
        except Timeout:
            stage("wait for another process that makes the same")  # a job that says nothing would be taken for stuck
            if not busy():
                break
        except (NotImplementedError, OSError):  # no locks here
            break
    try:
        yield
    finally:
        held.release()
