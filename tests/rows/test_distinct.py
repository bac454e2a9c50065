"""Equal rows have one number, however they are read."""

from __future__ import annotations

import pytest
import torch

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.rows.row_sets import distinct


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
