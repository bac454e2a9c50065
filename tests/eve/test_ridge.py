"""Ridge regression of rows that do not fit in memory is that of rows that do."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from bench.eve.ridge import Kernel, Pairs, predict, predict_in_parts
from bench.memory.memory_budget import Budget, TooLargeError
from bench.memory.rows import Rows, in_blocks
from bench.seeds import generator

N, M, LOCATIONS, T = 230, 210, 3, 90
RAW_BYTES = N * LOCATIONS * 5 * 8


def made() -> tuple[Tensor, Tensor, Pairs]:
    """Raw rows, released rows that depend on them, and pairs, some of them wrong."""
    raw = torch.randn(N, LOCATIONS, 5, generator=generator(0)).double() * torch.tensor([1.0, 20.0, 1e-3])[:, None]
    released = (raw[:M] @ torch.randn(5, 7, generator=generator(1)).double()).tanh()
    raw, released = (rows - rows.mean(dim=0) for rows in (raw, released))
    chosen = torch.randperm(M, generator=generator(2))[:T]
    wrong = torch.where(torch.arange(T) < T // 4, chosen.roll(1), chosen)
    return raw, released, Pairs(wrong[chosen.argsort()], chosen.sort().values, torch.arange(N).remainder(5))


def on_disk(rows: Tensor, memory: int) -> Tensor:
    return Rows.of(rows.numpy(), Budget(memory), dtype=torch.float64)


@pytest.mark.parametrize("kernel", ["linear", "gauss"])
@pytest.mark.parametrize("lying", [(True, True), (True, False), (False, True)], ids=["both", "raw", "released"])
@pytest.mark.parametrize("memory", [2 * RAW_BYTES, 100 * RAW_BYTES], ids=["half", "all"])
def test_predictions_in_parts_are_those_of_the_whole(kernel: Kernel, lying: tuple[bool, bool], memory: int) -> None:
    raw, released, pairs = made()
    expected = predict(list(raw.unbind(dim=1)), list(released.unbind(dim=1)), pairs, kernel)
    sides = [on_disk(rows, memory) if there else rows for rows, there in zip((raw, released), lying, strict=True)]
    for found, whole in zip(predict_in_parts(sides[0], sides[1], pairs, kernel), expected, strict=True):
        together = torch.cat([block for _, block in in_blocks(found)])
        torch.testing.assert_close(together, whole, rtol=1e-9, atol=1e-9)


def test_predictions_have_the_same_bits_in_every_block() -> None:
    raw, released, pairs = made()
    found, _ = predict_in_parts(on_disk(raw, 2 * RAW_BYTES), released, pairs, "gauss")
    together = torch.cat([block for _, block in in_blocks(found)])
    assert torch.equal(found[torch.arange(17, 29)], together[17:29])


def test_matched_rows_of_which_no_location_fits_are_refused_with_the_memory_that_they_take() -> None:
    raw, released, pairs = made()
    with pytest.raises(TooLargeError, match="or allow --memory"):
        predict_in_parts(on_disk(raw, T * 5 * 8), released, pairs, "linear")
