from __future__ import annotations

import pytest
import torch

from bench.rows.row_sets import originals
from bench.types import NotApplicable


def test_every_released_row_gets_its_raw_row_whatever_the_order_of_the_links() -> None:
    assert originals(torch.tensor([[4, 1], [7, 0], [4, 2]]), 3, "mine").tolist() == [7, 4, 4]


@pytest.mark.parametrize("links", [None, [[0, 0]], [[0, 0], [1, 0]], [[0, 0], [1, 1], [2, 1]]])
def test_rows_of_no_or_of_several_originals_are_not_applicable(links: list[list[int]] | None) -> None:
    with pytest.raises(NotApplicable, match="mine does not release one row per raw row"):
        originals(None if links is None else torch.tensor(links), 2, "mine")
