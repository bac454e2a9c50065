"""Clocks: wall seconds with the device synchronised, repeats after a warm-up, peak memory."""

from __future__ import annotations

import threading
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


WARM_UPS = 2  # the first warms caches up, the second is watched for its memory


def repeat(work: Callable[[], object], *, device: torch.device, repeats: int) -> Timing:
    """Time `work` `repeats` times after `WARM_UPS` untimed runs, the device synchronised around each.

    Peak memory is what the second warm-up needed beyond what was held before it: by the accelerator's allocator, or
    on a CPU by the growth of the resident set, looked at every millisecond.
    """
    work()
    peak = _peak(work, device)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        kept = work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
        del kept
    return Timing(tuple(seconds), peak)


def _peak(work: Callable[[], object], device: torch.device) -> int:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    process = psutil.Process()
    before = high = process.memory_info().rss
    done = threading.Event()

    def watch() -> None:
        nonlocal high
        while not done.wait(0.001):
            high = max(high, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        kept = work()
        high = max(high, process.memory_info().rss)
        del kept
    finally:
        done.set()
        watcher.join()
    return high - before
