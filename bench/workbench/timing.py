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


def repeat(
    work: Callable[[], object], *, device: torch.device, repeats: int, process: int | None = None,
    after: Callable[[object], object] = lambda made: None,
) -> Timing:  # fmt: skip
    """Time `work` `repeats` times after `WARM_UPS` untimed runs, the device synchronised around each.

    Peak memory is what the second warm-up needed beyond what was held before it: by the accelerator's allocator, or
    on a CPU by the growth of the resident set, looked at every millisecond.

    Args:
        work: What is timed.
        device: That the work is done on.
        repeats: At least 1.
        process: In which it is done, with those that it started; None stands for this one.
        after: Gets what `work` made, untimed.
    """
    after(work())
    made, peak = _peak(work, device, process)
    after(made)
    del made
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        kept = work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
        after(kept)
        del kept
    return Timing(tuple(seconds), peak)


def _peak(work: Callable[[], object], device: torch.device, number: int | None) -> tuple[object, int]:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        kept = work()
        torch.cuda.synchronize(device)
        return kept, torch.cuda.max_memory_allocated(device) - before
    whole = psutil.Process(number)
    processes = [whole, *whole.children(recursive=True)] if number is not None else [whole]

    def held() -> int:
        return sum(int(process.memory_info().rss) for process in processes)

    before = high = held()
    done = threading.Event()

    def watch() -> None:
        nonlocal high
        while not done.wait(0.001):
            high = max(high, held())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        kept = work()
        high = max(high, held())
    finally:
        done.set()
        watcher.join()
    return kept, high - before
