"""A process and everything that it started, daemons too: found and ended."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
from collections.abc import Iterable

import psutil

_PDEATHSIG, _CHILD_SUBREAPER = 1, 36  # of <linux/prctl.h>
_ROUNDS = 100


def adopt_orphans() -> None:
    """Adopt descendants whose parent ends, so that none leaves (Linux only)."""
    _prctl(_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the parent ends (Linux alone)."""
    end_with_parent(signal.SIGKILL)


def end_with_parent(number: signal.Signals) -> None:
    """Get a signal when the parent ends (Linux alone)."""
    _prctl(_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def below(root: psutil.Process) -> list[psutil.Process]:
    """Every living descendant of a process, the oldest first."""
    try:
        found = root.children(recursive=True)
    except psutil.Error:
        return []
    return sorted((process for process in found if _lives(process)), key=psutil.Process.create_time)


def end_below(root: psutil.Process, known: Iterable[psutil.Process] = ()) -> None:
    """Kill every descendant of `root` and the known processes, not `root`.

    They are stopped before they are killed: what is stopped starts nothing new while the others are looked for.
    """
    found: set[psutil.Process] = set()
    more = {process for process in known if process != root and _lives(process)}
    for _ in range(_ROUNDS):
        more |= {process for each in (root, *found, *more) for process in below(each)} - found
        if not more:
            break
        for process in more:
            _tell(process, signal.SIGSTOP)
        found |= more
        more = set()
    for process in found:
        _tell(process, signal.SIGKILL)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _tell(process: psutil.Process, what: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error):
        process.send_signal(what)
