"""What processes hold in memory, as the system tells it."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

_PART = re.compile(r"^(\w+):[ \t]+([0-9]+) kB$", re.MULTILINE)


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
