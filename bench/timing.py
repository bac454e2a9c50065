"""Clocks: wall seconds with the device synchronised, repeats after a warm-up, peak memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil
import torch


@dataclass(frozen=True)
class Timing:
    """Seconds of each repeat, and the peak memory in bytes that the work used (on the accelerator if there is one)."""

    seconds: tuple[float, ...]
    peak_bytes: int


def repeat(work: Callable[[], object], *, device: torch.device, repeats: int, warm_up: int = 1) -> Timing:
    """Time `work` `repeats` times after `warm_up` untimed runs, the device synchronised around each.

    Peak memory is the accelerator's allocator peak, or on a CPU the growth of the resident set seen after the runs.
    """
    for _ in range(warm_up):
        work()
    before = psutil.Process().memory_info().rss
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    seconds, high = [], before
    for _ in range(repeats):
        start = time.perf_counter()
        kept = work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
        high = max(high, psutil.Process().memory_info().rss)
        del kept
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else high - before
    return Timing(tuple(seconds), peak)
