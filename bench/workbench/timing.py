"""Clocks: synchronised wall seconds, repeats after a warm-up, and peak memory."""

from __future__ import annotations

import contextlib
import math
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from statistics import fmean, median
from typing import cast

import psutil
import torch
from pydantic import JsonValue

from bench.isolation import RemoteKey
from bench.isolation.remote_method import KeptRelease
from bench.memory.memory_budget import at_most
from bench.memory.rows import rows_at
from bench.nets.convolutional_networks import resnet18
from bench.types import Dataset, Key, Release


@dataclass(frozen=True)
class Timing:
    """Seconds of each repeat, and peak memory in bytes.

    On the accelerator if there is one.
    """

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
    """A release to time, and a function that gives it afterwards, untimed.

    Of a remote key neither the way of the rows nor that of the release is timed, and it is asked in no other words than
    for any release.
    """
    if isinstance(key, RemoteKey):
        key.handle()
        key.hold(private)
        return partial(key.kept_release, private), lambda kept: key.fetch(cast(KeptRelease, kept))
    return partial(key.release, private), lambda made: cast(Release, made)


ROWS = {"cpu": 16, "cuda": 2048}  # where the rate is near its highest; 64 on a CPU take four times as long
USUAL_PIXELS = 64 * 64  # of an image; of larger ones, fewer rows keep a device as busy
FEWEST_ROWS = 16
LEAST_SIDE = 32
REPEATS = 3


def resnet18_rate(rows: torch.Tensor, device: torch.device) -> float | None:
    """Images per second of a ResNet-18 in float32, in one batch.

    Args:
        rows: (n, c, h, w), repeated or cut to the number of rows that keeps the device busy.
        device: It runs on.

    Returns:
        None where there are no rows, or no images of at least 32 pixels a side, which the network halves five times.
    """
    if rows.ndim != 4 or min(rows.shape[2:]) < LEAST_SIDE or not len(rows):
        return None
    pixels = rows.shape[2] * rows.shape[3]
    wanted = max(FEWEST_ROWS, ROWS[device.type] * USUAL_PIXELS // max(pixels, USUAL_PIXELS))
    batch = rows_at(rows, torch.arange(wanted) % len(rows))[:].to(device, memory_format=torch.channels_last)
    network = resnet18((batch.shape[1], batch.shape[2], batch.shape[3]), 1)
    network.eval().to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    with torch.inference_mode():
        return wanted / median(repeat(lambda: network(batch), device=device, repeats=REPEATS).seconds)


EVERY_MILLISECONDS = 50
_SECONDS = 30
_SETTINGS = {"driver": "driver_version", "power_limit_w": "power.limit", "highest_clock_mhz": "clocks.max.sm"}
_RUNNING = ("power.draw", "clocks.sm")


@cache
def settings(device: torch.device) -> dict[str, JsonValue]:
    """Driver, power limit and highest clock; empty without the tool."""
    try:
        command = _command(device, _SETTINGS.values())
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(_SETTINGS, (each.strip() for each in done.stdout.strip().split(",")), strict=False))


@dataclass
class Ran:
    """Mean power (W) and clock (MHz) of a block; None if unknown.

    They are filled when the block ends.
    """

    watts: float | None = None
    megahertz: float | None = None
    seen: int = 0


@contextmanager
def watched(device: torch.device) -> Iterator[Ran]:
    """Watch a CUDA card while the block runs; on a CPU nothing.

    A sample every `EVERY_MILLISECONDS`.

    The tool says the mean power of the last moments: a block should run for a second or more.
    """
    ran = Ran()
    if device.type != "cuda":
        yield ran
        return
    command = [*_command(device, _RUNNING), f"--loop-ms={EVERY_MILLISECONDS}"]
    try:
        tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        yield ran
        return
    try:
        yield ran
    finally:
        tool.terminate()
        try:
            said, _ = tool.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            tool.kill()
            said, _ = tool.communicate()
        powers, clocks = list[float](), list[float]()
        for line in said.splitlines():
            with contextlib.suppress(ValueError):  # a line cut short, or "[N/A]"
                power, clock = (float(each) for each in line.split(","))
                powers.append(power)
                clocks.append(clock)
        if powers:
            ran.watts, ran.megahertz, ran.seen = fmean(powers), fmean(clocks), len(powers)


def _command(device: torch.device, asked: Iterable[str]) -> list[str]:
    query = ",".join(asked)
    return ["nvidia-smi", f"--id={_identity(device)}", f"--query-gpu={query}", "--format=csv,noheader,nounits"]


def _identity(device: torch.device) -> str:
    """The card's UUID, since the tool numbers hidden cards as well."""
    try:
        found = torch.cuda.get_device_properties(device).uuid
    except (AttributeError, RuntimeError, AssertionError):
        return str(device.index or 0)
    return f"GPU-{found}"
