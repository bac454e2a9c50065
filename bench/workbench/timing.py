"""Clocks: wall seconds with the device synchronised, repeats after a warm-up, peak memory."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import psutil
import torch

from bench.isolation import RemoteKey
from bench.isolation.rpc_codec import Handle
from bench.memory.memory_budget import at_most
from bench.types import Dataset, Key, Release


@dataclass(frozen=True)
class Timing:
    """Seconds of each repeat, and the peak memory in bytes that the work used (on the accelerator if there is one)."""

    seconds: tuple[float, ...]
    peak_bytes: int


WARM_UPS = 6  # at most; the first warms caches up, the second is watched for its memory
STEADY = 0.1  # a run that is within so much of the one before says that the machine is warm
SLOW = 5.0  # seconds of a run beside which what a cold machine costs is nothing


def repeat(
    work: Callable[[], object], *, device: torch.device, repeats: int, process: int | None = None,
    after: Callable[[object], object] = lambda made: None,
) -> Timing:  # fmt: skip
    """Time `work` `repeats` times after untimed runs, the device synchronised around each.

    Two runs come first, one watched for its memory; then more, `WARM_UPS` in all at most, until one takes no tenth less
    than that before it, unless the first takes longer than `SLOW`.

    Peak memory is what the second needed beyond what was held before it: by the accelerator's allocator, or
    on a CPU by the growth of what its processes hold, but for files that are mapped, looked at every millisecond.

    Args:
        work: What is timed.
        device: That the work is done on.
        repeats: At least 1.
        process: In which it is done, with those that it started; None stands for this one.
        after: Gets what `work` made, untimed.
    """

    def timed() -> float:
        start = time.perf_counter()
        kept = work()
        settle(device)
        spent = time.perf_counter() - start
        after(kept)
        return spent

    first, last = timed(), math.inf
    made, peak = _peak(work, device, process)
    after(made)
    del made
    for _ in range(WARM_UPS - 2 if first < SLOW else 0):
        last, before = timed(), last
        if last > (1 - STEADY) * before:
            break
    return Timing(tuple(timed() for _ in range(repeats)), peak)


def settle(device: torch.device) -> None:
    """Wait for what an accelerator was given to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _peak(work: Callable[[], object], device: torch.device, number: int | None) -> tuple[object, int]:
    if device.type == "cuda":
        settle(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        kept = work()
        settle(device)
        return kept, torch.cuda.max_memory_allocated(device) - before
    whole = psutil.Process(number)
    processes = [whole, *whole.children(recursive=True)] if number is not None else [whole]
    before = high = at_most(processes)
    done = threading.Event()

    def watch() -> None:
        nonlocal high
        while not done.wait(0.001):
            high = max(high, at_most(processes))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        kept = work()
        high = max(high, at_most(processes))
    finally:
        done.set()
        watcher.join()
    return kept, high - before


def timed_release(key: Key, private: Dataset) -> tuple[Callable[[], object], Callable[[object], Release]]:
    """A release to be timed, and what gives it afterwards, untimed, to be looked at.

    Of a remote key neither the way of the rows nor that of the release is timed, and it is asked in no other words than
    for any release.
    """
    if isinstance(key, RemoteKey):
        key.handle()
        key.scheme.method.hold(private)
        return partial(key.kept_release, private), lambda kept: key.fetch(cast(Handle, kept))
    return partial(key.release, private), lambda made: cast(Release, made)
