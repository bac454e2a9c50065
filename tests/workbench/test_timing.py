"""The stopwatch: how often work runs, what is timed, and what is freed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.workbench.timing import WARM_UPS, repeat

CPU = torch.device("cpu")


class Clock:
    """A clock that only work moves; it counts in sixteenths of a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now / 16


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("bench.workbench.timing.time.perf_counter", made)
    return made


@pytest.mark.parametrize("repeats", [1, 3, 5])
def test_work_runs_untimed_first_and_then_as_often_as_asked(repeats: int) -> None:
    calls: list[None] = []
    timing = repeat(lambda: calls.append(None), device=CPU, repeats=repeats)
    assert 4 <= len(calls) - repeats <= WARM_UPS
    assert len(timing.seconds) == repeats
    assert all(seconds >= 0 for seconds in timing.seconds)


def test_the_warm_up_is_not_timed(clock: Clock) -> None:
    seconds = iter([70.0, 70.0, 4.0, 4.0, 1.0, 2.0, 3.0])

    def work() -> None:
        clock.now += next(seconds)

    assert repeat(work, device=CPU, repeats=3).seconds == (1 / 16, 2 / 16, 3 / 16)


@pytest.mark.parametrize(
    ("seconds", "untimed"), [([9, 9, 8, 8], 4), ([9, 9, 8, 6, 5.5], 5), ([64, 32, 16, 8, 4, 2], WARM_UPS)]
)
def test_it_warms_up_until_two_runs_agree(clock: Clock, seconds: list[float], untimed: int) -> None:
    given = iter([*seconds, 1.0])
    calls: list[float] = []

    def work() -> None:
        calls.append(next(given))
        clock.now += calls[-1]

    assert repeat(work, device=CPU, repeats=1).seconds == (1 / 16,)
    assert len(calls) == untimed + 1


def test_what_is_slow_is_not_warmed_up_further(clock: Clock) -> None:
    calls: list[None] = []

    def work() -> None:
        calls.append(None)
        clock.now += 16 * 6

    assert repeat(work, device=CPU, repeats=1).seconds == (6.0,)
    assert len(calls) == 3


def test_the_result_of_a_repeat_is_freed_before_the_next() -> None:
    class Result:
        pass

    made: list[weakref.ref[Result]] = []

    def work() -> Result:
        assert all(reference() is None for reference in made)
        result = Result()
        made.append(weakref.ref(result))
        return result

    repeat(work, device=CPU, repeats=3)
    assert 4 <= len(made) - 3 <= WARM_UPS


def test_memory_that_work_holds_is_seen() -> None:
    held = 256 * 2**20
    timing = repeat(lambda: torch.ones(held // 4), device=CPU, repeats=1)
    assert timing.peak_bytes > held // 2


def test_memory_is_what_work_needs_beyond_what_was_held_before() -> None:
    held = torch.ones(64 * 2**20)
    assert repeat(lambda: held.sum(), device=CPU, repeats=1).peak_bytes < 64 * 2**20


def test_memory_that_is_freed_before_work_ends_is_seen() -> None:
    def work() -> None:
        held = torch.ones(64 * 2**20)
        time.sleep(0.3)  # so that a look every millisecond has its turn on a busy machine too
        del held

    assert repeat(work, device=CPU, repeats=1).peak_bytes > 128 * 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="told apart as Linux tells")
def test_files_that_are_mapped_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(bytes(128 * 2**20))

    def work() -> np.ndarray:
        mapped = np.memmap(path, dtype=np.uint8, mode="r")
        assert not mapped[::4096].any()
        return mapped

    assert repeat(work, device=CPU, repeats=1).peak_bytes < 64 * 2**20


def test_a_process_may_end_while_it_is_looked_at() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:

        def work() -> None:
            if calls.pop():  # the second run is watched
                child.communicate(b"\n")

        calls = [False] * 10 + [True, False]
        assert repeat(work, device=CPU, repeats=1, process=os.getpid()).peak_bytes < 2**30


def test_work_that_raises_is_not_swallowed() -> None:
    def work() -> None:
        raise RuntimeError("no luck")

    with pytest.raises(RuntimeError, match="no luck"):
        repeat(work, device=CPU, repeats=1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_an_accelerator_is_waited_for_and_its_peak_is_the_allocators() -> None:
    device = torch.device("cuda")
    square = torch.randn(4096, 4096, device=device)
    timing = repeat(lambda: square @ square @ square, device=device, repeats=3)
    # Queueing two such products takes microseconds; doing them takes a millisecond on the fastest device.
    assert min(timing.seconds) > 5e-4
    assert timing.peak_bytes >= 2 * square.numel() * 4
