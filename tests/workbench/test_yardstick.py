"""The ResNet-18 that speed is held against sees a few rows, wherever they lie."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.workbench import timing
from bench.workbench.timing import Timing

CPU = torch.device("cpu")
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


@pytest.mark.parametrize("rows", [IMAGES[:0], IMAGES[:, :, :16], IMAGES.flatten(1)])
def test_without_images_of_its_size_there_is_none(rows: Tensor) -> None:
    assert timing.resnet18_rate(rows, CPU) is None
