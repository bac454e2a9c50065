"""A process and everything that it started, daemons too: found, measured and ended."""

from __future__ import annotations

import contextlib
import ctypes
import re
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil

_PDEATHSIG, _CHILD_SUBREAPER = 1, 36  # of <linux/prctl.h>
_ROUNDS = 100
_PART = re.compile(r"^(\w+):[ \t]+([0-9]+) kB$", re.MULTILINE)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (Linux alone): none can leave the tree."""
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
    """Kill every descendant, and the processes that are known from before; `root` itself is left alone.

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


def memory(processes: Iterable[psutil.Process]) -> int:
    """Bytes that processes hold together and no file could give back: each its own, and its share of what it shares.

    Files that are mapped, those of prepared data and of releases, do not count: they go when memory is short.
    """
    held = 0
    for process in processes:
        with contextlib.suppress(psutil.Error, AttributeError):
            held += _held(process)
    return held


def at_most(processes: Iterable[psutil.Process]) -> int:
    """Bytes that `memory` does not exceed, told without a walk over every page: what is shared counts for each.

    Some kernels count late, by 128 KiB a processor and process.
    """
    bound = 0
    for process in processes:
        with contextlib.suppress(psutil.Error, AttributeError):
            bound += _resident(process)
    return bound


def _resident(process: psutil.Process) -> int:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # gone
            content = Path(f"/proc/{process.pid}/status").read_bytes()  # its name is whatever bytes it chose
            told = dict(_PART.findall(content.decode("ascii", "replace")))
            if "RssAnon" in told:
                return 1024 * sum(int(told.get(part, 0)) for part in ("RssAnon", "RssShmem", "VmSwap"))
    return int(process.memory_info().rss)


def _held(process: psutil.Process) -> int:
    if sys.platform != "linux":
        return int(process.memory_full_info().uss)
    try:
        told = dict(_PART.findall(Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")))
    except OSError:  # of another user, or gone
        told = {}
    if "Pss_Anon" not in told:  # an older kernel: what is shared with those that it was forked from counts whole
        found = process.memory_info()
        return int(found.rss - found.shared)
    return 1024 * sum(int(told.get(part, 0)) for part in ("Pss_Anon", "Pss_Shmem", "SwapPss"))


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _tell(process: psutil.Process, what: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error):
        process.send_signal(what)
