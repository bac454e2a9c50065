"""Equal rows have one number, however they are read."""

from __future__ import annotations

import pytest
import torch

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.rows.row_sets import distinct, originals, same_but_rounding
from bench.types import NotApplicable


@pytest.mark.parametrize("on_disk", [False, True])
def test_equal_rows_have_one_number_and_rows_with_nan_one_of_their_own(*, on_disk: bool) -> None:
    nan = float("nan")
    plain = torch.tensor([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0], [nan, 1.0], [nan, 1.0], [2.0, 3.0]])
    rows = Rows.of(plain.numpy(), Budget(128 * 16)) if on_disk else plain  # two rows a block
    first, number = distinct(rows)
    assert number[0] == number[2]
    assert number[1] == number[5]
    assert len(set(number.tolist())) == len(first) == 4
    assert number[first].tolist() == list(range(4))


def test_every_released_row_gets_its_raw_row_whatever_the_order_of_the_links() -> None:
    assert originals(torch.tensor([[4, 1], [7, 0], [4, 2]]), 3, "mine").tolist() == [7, 4, 4]


@pytest.mark.parametrize("links", [None, [[0, 0]], [[0, 0], [1, 0]], [[0, 0], [1, 1], [2, 1]]])
def test_rows_of_no_or_of_several_originals_are_not_applicable(links: list[list[int]] | None) -> None:
    with pytest.raises(NotApplicable, match="mine does not release one row per raw row"):
        originals(None if links is None else torch.tensor(links), 2, "mine")


ROWS = torch.randn(600, 40, generator=torch.Generator().manual_seed(0))


def test_rounding_is_no_difference() -> None:
    assert same_but_rounding(ROWS, ROWS + 1e-6)
    assert same_but_rounding(1e30 * ROWS, 1e30 * (ROWS + 1e-6))
    assert same_but_rounding(1e-30 * ROWS, 1e-30 * (ROWS + 1e-6))
    assert same_but_rounding(ROWS.double() * 1e300, ROWS.double() * 1e300)
    sparse = ROWS * (torch.arange(40) == 0)
    assert same_but_rounding(sparse, sparse + 1e-6)


@pytest.mark.parametrize("share", [1e-4, 0.05])
def test_huge_numbers_do_not_hide_what_the_others_say(share: float) -> None:
    huge = torch.rand(ROWS.shape, generator=torch.Generator().manual_seed(1)) < share
    assert huge.any()
    shown = ROWS.masked_fill(huge, 1e30)
    assert same_but_rounding(shown, shown.masked_fill(huge, 1e30 * (1 + 1e-6)))
    assert not same_but_rounding(shown, ROWS.flip(0).masked_fill(huge, 1e30))
    assert not same_but_rounding(ROWS.masked_fill(huge, torch.inf), ROWS.flip(0).masked_fill(huge, torch.inf))


def test_kinds_shapes_and_what_is_not_known_must_agree() -> None:
    assert not same_but_rounding(ROWS, ROWS.double())
    assert not same_but_rounding(ROWS, ROWS[:-1])
    assert not same_but_rounding(ROWS, ROWS.index_fill(0, torch.tensor([3]), torch.nan))
    unknown = ROWS.index_fill(0, torch.tensor([3]), torch.nan)
    assert same_but_rounding(unknown, unknown.clone())
    assert same_but_rounding(torch.zeros(3, 2), torch.zeros(3, 2))
    assert not same_but_rounding(torch.zeros(3, 2), torch.full((3, 2), 1e-9))
    assert same_but_rounding(torch.zeros(0, 2), torch.zeros(0, 2))
    assert same_but_rounding(torch.arange(4), torch.arange(4))
    assert not same_but_rounding(torch.arange(4), torch.tensor([0, 1, 2, 4]))
    assert same_but_rounding(None, None)
    assert not same_but_rounding(ROWS, None)
    assert not same_but_rounding(None, ROWS)
