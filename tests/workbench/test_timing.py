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
from torch import Tensor

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.workbench import timing
from bench.workbench.timing import WARM_UPS, Timing, repeat, settings, watched

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


IMAGES = torch.rand(40, 1, 32, 32, generator=torch.Generator().manual_seed(0))


def seen(rows: Tensor, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The batches that the network was given."""
    batches: list[Tensor] = []

    def once(work, **_) -> Timing:
        work()
        return Timing((0.5,), 0)

    network = torch.nn.Flatten()
    network.register_forward_hook(lambda module, inputs, output: batches.append(inputs[0]))
    monkeypatch.setattr(timing, "resnet18", lambda shape, outputs: network)
    monkeypatch.setattr(timing, "repeat", once)
    assert timing.resnet18_rate(rows, CPU) == 2 * timing.ROWS["cpu"]
    return batches


def test_rows_that_do_not_fit_at_once_are_read_as_far_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    on_disk = Rows.of(IMAGES.numpy(), Budget(4 * 20 * 32 * 32 * 4))  # twenty of them at once
    (batch,) = seen(on_disk, monkeypatch)
    assert torch.equal(batch, IMAGES[: len(batch)])


def test_few_rows_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    (batch,) = seen(IMAGES[:5], monkeypatch)
    assert torch.equal(batch, IMAGES[:5].repeat(4, 1, 1, 1)[: len(batch)])


def test_of_larger_images_fewer_rows_keep_the_device_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(timing.ROWS, "cpu", 64)
    sizes: list[int] = []
    for side in (64, 128, 512):
        monkeypatch.setattr(timing, "resnet18", lambda shape, outputs: torch.nn.Flatten())

        def once(work, **_) -> Timing:
            sizes.append(len(work()))
            return Timing((1.0,), 0)

        monkeypatch.setattr(timing, "repeat", once)
        assert timing.resnet18_rate(torch.zeros(2, 1, side, side), CPU) == sizes[-1]
    assert sizes == [64, 16, timing.FEWEST_ROWS]


@pytest.mark.parametrize("rows", [IMAGES[:0], IMAGES[:, :, :16], IMAGES.flatten(1)])
def test_without_images_of_its_size_there_is_none(rows: Tensor) -> None:
    assert timing.resnet18_rate(rows, CPU) is None


CUDA = torch.device("cuda", 0)
TOOL = """#!/bin/sh
echo "$@" >> "{folder}/asked"
case "$*" in
*power.limit*) echo "550.1, 300.00, 1980" ;;
*) {said} ;;
esac
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(TOOL.format(folder=folder, said=said))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    settings.cache_clear()


def test_power_and_clock_are_the_means_of_what_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "\\n".join(("100.0, 1000", "[N/A], 1000", "300.0, 1500", "2"))
    install(tmp_path, monkeypatch, f"printf '{lines}'; touch {tmp_path}/done; exec sleep 60")
    with watched(CUDA) as ran:
        while not (tmp_path / "done").exists():
            time.sleep(0.01)
        assert ran.watts is None
    assert (ran.watts, ran.megahertz, ran.seen) == (200.0, 1250.0, 2)
    assert "--query-gpu=power.draw,clocks.sm" in (tmp_path / "asked").read_text()


def test_settings_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "exit 1")
    assert settings(CUDA) == {"driver": "550.1", "power_limit_w": "300.00", "highest_clock_mhz": "1980"}
    settings(CUDA)
    assert len((tmp_path / "asked").read_text().splitlines()) == 1


@pytest.mark.parametrize("said", ["exit 9", "exec sleep 60"])
def test_a_tool_that_says_nothing_leaves_power_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    install(tmp_path, monkeypatch, said)
    with watched(CUDA) as ran:
        pass
    assert ran.watts is None


def test_without_the_tool_or_a_card_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    settings.cache_clear()
    assert settings(CUDA) == {}
    with watched(CUDA) as ran, watched(torch.device("cpu")) as idle:
        pass
    assert ran.watts is idle.watts is None


def test_an_error_within_the_block_ends_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 60")

    def work() -> None:
        with watched(CUDA):
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
                time.sleep(0.01)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
