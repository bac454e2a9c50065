from __future__ import annotations

import pytest
import torch

from bench.rows.row_sets import same_but_rounding

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
