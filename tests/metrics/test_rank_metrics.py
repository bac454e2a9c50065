from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made.dense_scores import DenseScores, diagonal
from sklearn.metrics import roc_curve

from bench.pairs.sweep import count
from metrics.median_rank import median_rank
from metrics.tpr_at_low_fpr import tpr_at


@st.composite
def grids(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    """A grid of any shape with few or many ties and any links but all."""
    n, m = draw(st.integers(1, 9)), draw(st.integers(2, 9))
    levels = draw(st.sampled_from([1, 2, 4, 1000]))
    values = draw(st.lists(st.integers(0, levels), min_size=n * m, max_size=n * m))
    places = draw(st.sets(st.integers(0, n * m - 1), min_size=1, max_size=n * m - 1))
    links = torch.tensor([[place // m, place % m] for place in sorted(places)])
    return torch.tensor(values, dtype=torch.float64).reshape(n, m), links


@settings(max_examples=200, deadline=None)
@given(grids(), st.sampled_from([2, 3, 7, 10, 1000]))
def test_tpr_is_the_height_of_the_roc_curve(grid: tuple[torch.Tensor, torch.Tensor], one_in: int) -> None:
    matrix, links = grid
    truth = torch.zeros_like(matrix)
    truth[links[:, 0], links[:, 1]] = 1
    fpr, tpr, _ = roc_curve(truth.flatten(), matrix.flatten(), drop_intermediate=False)
    rate = 1 / one_in
    # The curve's upper end where it rises at one rate; straight between corners otherwise.
    reached = np.flatnonzero(fpr <= rate + 1e-12)[-1]
    expected = tpr[reached]
    if rate > fpr[reached] + 1e-12:
        expected += (tpr[reached + 1] - expected) * (rate - fpr[reached]) / (fpr[reached + 1] - fpr[reached])
    assert tpr_at(count(DenseScores(matrix), links), one_in) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(grids())
def test_median_rank_is_that_of_sorted_columns(grid: tuple[torch.Tensor, torch.Tensor]) -> None:
    matrix, links = grid
    ranks = []
    for col in sorted(set(links[:, 1].tolist())):
        right = links[links[:, 1] == col, 0].tolist()
        best = max(float(matrix[row, col]) for row in right)
        above = sum(float(value) > best for value in matrix[:, col])
        tied = sum(float(value) == best for value in matrix[:, col])
        correct = sum(float(matrix[row, col]) == best for row in right)
        ranks.append(above + (tied + 1) / (correct + 1))
    assert median_rank(count(DenseScores(matrix), links)) == pytest.approx(float(np.median(ranks)))


def test_a_perfect_attack_has_all_pairs_at_any_rate_and_rank_one() -> None:
    counts = count(DenseScores(torch.eye(40)), diagonal(40))
    assert tpr_at(counts, 10_000) == 1.0
    assert median_rank(counts) == 1.0


def test_scores_all_the_same_give_the_rate_itself_and_the_middle_rank() -> None:
    counts = count(DenseScores(torch.zeros(41, 41)), diagonal(41))
    assert math.isclose(tpr_at(counts, 1000), 1e-3)
    assert median_rank(counts) == 21.0
