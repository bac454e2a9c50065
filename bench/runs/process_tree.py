"""A process and everything that it started, daemons too: found, measured and ended."""

from __future__ import annotations

import contextlib
import ctypes
import re
import signal
import sys
from collections.abc import Callable, Iterable
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
    return _together(processes, _held)


def at_most(processes: Iterable[psutil.Process]) -> int:
    """Bytes that `memory` does not exceed, told without a walk over every page: what is shared counts for each.

    Some kernels count late, by 128 KiB a processor and process.
    """
    return _together(processes, _resident)


def _together(processes: Iterable[psutil.Process], of: Callable[[psutil.Process], int]) -> int:
    held = 0
    for process in processes:
        with contextlib.suppress(psutil.Error, AttributeError):
            held += of(process)
    return held


def _held(process: psutil.Process) -> int:
    if sys.platform != "linux":
        return int(process.memory_full_info().uss)
    told = _told(process, "smaps_rollup")
    if "Pss_Anon" not in told:  # an older kernel: what is shared with those that it was forked from counts whole
        found = process.memory_info()
        return int(found.rss - found.shared)
    return sum(told.get(part, 0) for part in ("Pss_Anon", "Pss_Shmem", "SwapPss"))


def _resident(process: psutil.Process) -> int:
    told = _told(process, "status") if sys.platform == "linux" else {}
    if "RssAnon" not in told:
        return int(process.memory_info().rss)
    return sum(told.get(part, 0) for part in ("RssAnon", "RssShmem", "VmSwap"))


def _told(process: psutil.Process, file: str) -> dict[str, int]:
    """Bytes by name, as Linux tells them; nothing of a process of another user, or one that is gone."""
    try:
        content = Path(f"/proc/{process.pid}/{file}").read_bytes()
    except OSError:
        return {}
    text = content.decode("ascii", "replace")  # a process's name is whatever bytes it chose
    return {name: 1024 * int(kib) for name, kib in _PART.findall(text)}


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _tell(process: psutil.Process, what: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error):
        process.send_signal(what)
