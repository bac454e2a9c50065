"""The peak of memory that work takes, measured in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
from pytest_benchmark.fixture import BenchmarkFixture

TESTS = Path(__file__).parents[1]
PATHS = (TESTS / "benchmarks", TESTS, TESTS.parent)
# Every freed block goes back to the system at once: what others left behind would hide what the work takes.
GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def taken(work: Callable[[], object]) -> float:
    """MB that this process held at the peak of `work`, beyond what it held before."""
    process, done = psutil.Process(), threading.Event()
    before = process.memory_info().rss
    peak = [before]

    def sample() -> None:
        while not done.wait(0.002):
            peak[0] = max(peak[0], process.memory_info().rss)

    thread = threading.Thread(target=sample)
    thread.start()
    work()
    done.set()
    thread.join()
    return (peak[0] - before) / 1e6


def measure_peak(benchmark: BenchmarkFixture, code: str) -> float:
    """What `code` prints, a number of MB, in a fresh Python that finds the benchmarks; kept in the `extra_info`."""
    environment = {**os.environ, **GIVEN_BACK, "PYTHONPATH": os.pathsep.join(map(str, PATHS))}

    def run() -> float:
        done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, env=environment)
        return float(done.stdout)

    benchmark.group = "memory (the time says nothing)"
    peak = float(benchmark.pedantic(run, rounds=1))  # type: ignore[no-untyped-call]
    benchmark.extra_info["peak_mb"] = peak
    return peak
