import math

import torch

from bench.eve.gram_matching import log_rank


def test_links_that_rank_first_count_nothing_and_ties_count_against_them():
    grid = torch.tensor([[3.0, 1.0], [2.0, 1.0], [1.0, 0.0]])
    assert log_rank(grid, torch.tensor([[0, 0]])) == 0
    assert log_rank(grid, torch.tensor([[0, 0], [1, 1]])) == 0.5
    assert log_rank(grid, torch.tensor([[2, 1]])) == math.log2(3)


def test_rows_mixed_into_one_do_not_stand_before_each_other():
    grid = torch.tensor([[3.0], [2.0], [1.0]])
    assert log_rank(grid, torch.tensor([[0, 0], [1, 0]])) == 0
    assert log_rank(grid, torch.tensor([[0, 0], [2, 0]])) == 0.5
