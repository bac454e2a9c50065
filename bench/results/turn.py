"""Taking turns: a lock where the file system has locks, so that two processes do not do the same work twice.

Nothing may hang on it. Where locks exclude nobody, or there are none, the work is done twice; a lock that a lost
machine holds for ever is not waited for, once nobody is at work behind it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.progress import stage

PATIENCE_SECONDS = 60.0
_FIRST_WAIT, _MOST_WAIT = 0.005, 0.25


@contextmanager
def turn(lock: Path, busy: Callable[[], bool]) -> Iterator[None]:
    """Wait until the lock is free, or until nobody is `busy` behind it for `PATIENCE_SECONDS`; hold it if that goes."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _held(handle, PATIENCE_SECONDS):
            stage("wait for another process that makes the same")  # else this one would be taken for stuck
            if not busy():
                break
        yield
    finally:
        os.close(handle)


def _held(handle: int, seconds: float) -> bool:
    """Whether the lock is ours within so many seconds; of a file system without locks it is at once."""
    end, wait = time.monotonic() + seconds, _FIRST_WAIT
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(wait)
            wait = min(2 * wait, _MOST_WAIT)
        except OSError:
            return True
        else:
            return True
