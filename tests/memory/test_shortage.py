"""A device whose memory does not suffice for a block of rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from made.cells import cell, place

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows, by_blocks
from bench.plugins import registry
from bench.plugins.configured import configure
from bench.plugins.spec import parse
from bench.progress import AGAIN, SMALLER, forward_progress
from bench.randomness import Secret
from bench.runs import tasks
from bench.runs.tasks import EvaluateTask, FitTask, evaluate_task, fit_task
from bench.seeds import generator
from bench.types import Dataset, KeylessKey, Method
from bench.workbench.cell import Planned

DEVICE = tasks.SHORT[SMALLER]


class Device:
    """Holds so many rows at a time; `seen` are the blocks that it was given."""

    def __init__(self, most: int) -> None:
        self.most, self.seen = most, list[int]()

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        self.seen.append(len(rows))
        if len(rows) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return rows + 1


@pytest.mark.parametrize(("size", "most", "blocks"), [
    (None, 10, [10]), (None, 5, [10, 5, 5]), (None, 1, [10, 5, 2, 1, *[1] * 9]), (4, 3, [4, 2, 2, 2, 2, 2]),
    (64, 5, [10, 5, 5]),
])  # fmt: skip
def test_blocks_are_halved_until_they_fit_and_stay_so(size: int | None, most: int, blocks: list[int]) -> None:
    device, said = Device(most), list[tuple[str, int, int]]()
    with forward_progress(lambda name, done, total: said.append((name, done, total))):
        made = by_blocks(torch.arange(10.0), device, size)
    assert made.tolist() == list(range(1, 11))
    assert device.seen == blocks
    assert [name for name, _, _ in said] == [SMALLER] * sum(block > most for block in blocks)


def test_a_row_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(torch.OutOfMemoryError):
        by_blocks(torch.arange(10.0), Device(0))


def test_what_draws_numbers_is_not_asked_again() -> None:
    device = Device(5)
    with pytest.raises(torch.OutOfMemoryError):
        by_blocks(torch.arange(10.0), device, draws=True)
    assert device.seen == [10]


@pytest.mark.parametrize("spec", ["cadp", "cadp[variant=official-code]", "dp-glow"])
def test_a_release_with_noise_is_the_same_where_its_network_needs_smaller_blocks(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = registry.build("methods", parse(spec), "smoke")
    assert isinstance(method, Method)
    labels = torch.arange(40).remainder(2).float()[:, None]
    samples = torch.rand(40, 1, 8, 8, generator=generator(0))
    rows = Dataset("made", samples, labels, None, ("a",), False, True)
    scheme: Any = method.fit(rows, 0)
    key = scheme.sample_key(Secret(bytes(32)))
    usual = key.release(rows).samples
    for name in ("encode", "decode"):
        monkeypatch.setattr(scheme.noise.flow, name, _narrow(getattr(scheme.noise.flow, name)))
    torch.testing.assert_close(key.release(rows).samples, usual, atol=1e-3, rtol=1e-3)


def _narrow(whole: Callable[..., Any]) -> Callable[..., Any]:
    def narrow(part: torch.Tensor, *more: object) -> Any:
        if len(part) > 7:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return whole(part, *more)

    return narrow


def test_reading_rows_on_disk_may_be_what_does_not_fit() -> None:
    device, numbers = Device(3), np.arange(10, dtype=np.uint8)[:, None]
    rows = Rows.of(numbers, Budget(1 << 16)).map(device)
    assert by_blocks(rows, lambda part: part, 8)[:].flatten().tolist() == list(range(1, 11))
    assert max(device.seen) == 8


def test_no_rows_are_one_block() -> None:
    assert by_blocks(torch.zeros(0, 3), Device(1)).shape == (0, 3)


def test_records_say_that_the_memory_ran_out(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, device = KeylessKey, Device(20)
    release = key.release

    def halved(self: object, private: Dataset) -> object:
        by_blocks(torch.arange(float(len(private))), device)
        return release(self, private)

    monkeypatch.setattr(key, "release", halved)
    where = place(tmp_path)
    planned = Planned("reidentification", configure("attacks", "nearest-neighbour", "smoke"), ("guesswork",))
    assert DEVICE not in fit_task(FitTask(cell("blur"), where, "none")).notes
    found = evaluate_task(EvaluateTask(cell("blur"), where, planned, "none"))
    assert "smaller blocks" in str(found.details[DEVICE])


def test_releases_without_room_on_the_disk_give_the_same_figures(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    what = tasks.SHORT[AGAIN]
    planned = Planned("reidentification", configure("attacks", "nearest-neighbour", "smoke"), ("guesswork",))
    task = EvaluateTask(cell("dp-simple"), place(tmp_path), planned, "none")
    kept = evaluate_task(task)
    shutil.rmtree(tmp_path / "results/artefacts/releases")
    monkeypatch.setattr("bench.results.store.shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    first, second = evaluate_task(task), evaluate_task(task)
    assert not list((tmp_path / "results/artefacts/releases").rglob("*.safetensors"))
    assert first.scores == second.scores == kept.scores
    assert what not in kept.details
    assert "made again" in str(second.details[what])
