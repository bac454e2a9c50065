from __future__ import annotations

import math
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made.dense_scores import DenseScores, diagonal
from made.random_evidence import Kind, evidence
from scipy.stats import binom
from sklearn.metrics import roc_curve

from bench.pairs.sweep import count
from bench.statistics.pair_statistics import tpr_at
from metrics.pair_roc import Advantage, advantage
from metrics.ranks import Top5, found_within, median_rank


@st.composite
def grids(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    """A grid of any shape with few or many ties and any links but all."""
    n, m = draw(st.integers(1, 9)), draw(st.integers(2, 9))
    levels = draw(st.sampled_from([1, 2, 4, 1000]))
    values = draw(st.lists(st.integers(0, levels), min_size=n * m, max_size=n * m))
    places = draw(st.sets(st.integers(0, n * m - 1), min_size=1, max_size=n * m - 1))
    links = torch.tensor([[place // m, place % m] for place in sorted(places)])
    return torch.tensor(values, dtype=torch.float64).reshape(n, m), links


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=100, deadline=None)
@given(grids(), st.integers(1, 9))
def test_found_within_counts_the_rows_whose_right_row_ranks_so_high(
    grid: tuple[torch.Tensor, torch.Tensor], guesses: int
) -> None:
    matrix, links = grid
    counts = count(DenseScores(matrix), links)
    share = float((counts.ranks <= guesses).double().mean())
    assert found_within(counts, guesses) == pytest.approx(share if guesses > 1 else float(counts.top_1.mean()))
    assert found_within(counts, 10**6) == 1.0
    distinct = count(DenseScores(matrix + 1e-6 * torch.arange(matrix.numel()).reshape(matrix.shape)), links)
    assert found_within(distinct, 1) == pytest.approx(float((distinct.ranks <= 1).double().mean()))


@settings(max_examples=100, deadline=None)
@given(grids())
def test_the_advantage_is_the_largest_lead_of_the_roc_curve(grid: tuple[torch.Tensor, torch.Tensor]) -> None:
    matrix, links = grid
    truth = torch.zeros_like(matrix)
    truth[links[:, 0], links[:, 1]] = 1
    fpr, tpr, _ = roc_curve(truth.flatten(), matrix.flatten(), drop_intermediate=False)
    assert advantage(count(DenseScores(matrix), links)) == pytest.approx((tpr - fpr).max(), abs=1e-12)


@pytest.mark.parametrize("kind", ["one to one", "k to one", "mixed"])
def test_what_random_scores_give_is_what_is_printed_as_chance(kind: Kind) -> None:
    repeats = 30
    found = [evidence(seed, kind=kind, n=90) for seed in range(repeats)]
    for metric in (Top5(), Advantage()):
        scores = [metric(one) for one in found]
        inside = sum(cast(float, score.null_low) <= score.value <= cast(float, score.null_high) for score in scores)
        assert inside >= binom(repeats, 0.95).ppf(1e-4), metric.name
        spread = np.std([score.value for score in scores]) / math.sqrt(repeats)
        middle = np.mean([cast(float, score.null) for score in scores])
        assert abs(np.mean([score.value for score in scores]) - middle) < 4 * spread, metric.name


def test_curves_stand_beside_their_figures_as_parts() -> None:
    found = evidence(0, n=120, signal=2.0)
    within, lead = Top5()(found).parts, Advantage()(found).parts
    assert list(within) == [f"within {guesses}" for guesses in (1, 2, 5, 10, 20, 50, 100)]
    assert list(within.values()) == sorted(within.values(), key=lambda part: part.value)
    assert list(lead.values()) == sorted(lead.values(), key=lambda part: -part.value)
    expected = np.mean([tpr_at(counts, 10_000) for counts in found.images.full])
    assert lead["1 false in 10000"].value == pytest.approx(expected)
