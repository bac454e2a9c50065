from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from made.dense_scores import DenseScores, diagonal

from bench.pairs.sweep import Grid, PairCounts, count_grids
from bench.statistics import pair_statistics as null
from bench.statistics.pair_statistics import (
    Layout,
    chance_of_mean,
    first_hit_within,
    one_sided,
    permutation_p,
    simulate_guesswork,
    tpr_at,
)
from metrics.guesswork import guesswork
from metrics.pair_roc import chance_sd, chance_tpr, reid_auc, simulate_tpr
from metrics.ranks import median_rank, simulate_median_rank, simulate_top_1, top_1

DRAWS, FAST = 150, 1000
ONE_IN = 20
LAYOUTS = {
    "one to one": ((24, 24), diagonal(24)),
    "several links, more rows": ((24, 17), torch.cat((diagonal(17), torch.tensor([[0, 1], [1, 0], [5, 7], [20, 3]])))),
    "k to one": ((24, 6), torch.stack((torch.arange(24), torch.arange(24) // 4), dim=1)),
}


def layout_of(kind: str) -> Layout:
    shape, links = LAYOUTS[kind]
    samples = [torch.arange(0, shape[0], 2), torch.arange(shape[0] // 2), torch.arange(shape[0])]
    rows, cols = np.zeros((3, shape[0]), dtype=bool), np.zeros((3, shape[1]), dtype=bool)
    for number, sample in enumerate(samples):
        rows[number, sample] = True
        cols[number, links[torch.isin(links[:, 0], sample), 1]] = True
    return Layout(shape, torch.unique(links, dim=0).numpy(), rows, cols)


@cache
def whole_grids(kind: str) -> list[list[PairCounts]]:
    """Counts of the data samples for whole random grids."""
    layout = layout_of(kind)
    random = torch.Generator().manual_seed(11)
    links = torch.from_numpy(layout.links)
    grids = [
        Grid(torch.from_numpy(np.flatnonzero(rows)), torch.from_numpy(np.flatnonzero(cols)), [links[inside]])
        for rows, cols, inside in zip(layout.rows, layout.cols, torch.from_numpy(layout.inside), strict=True)
    ]
    found = []
    for _ in range(DRAWS):
        matrix = torch.rand(layout.shape, generator=random, dtype=torch.float64)
        found.append([counts for (counts,) in count_grids(DenseScores(matrix), grids)])
    return found


@pytest.mark.parametrize("kind", LAYOUTS)
def test_simulations_have_the_distributions_of_whole_random_grids(kind: str) -> None:
    layout = layout_of(kind)
    slow = whole_grids(kind)
    for figure, fast in (
        (guesswork, simulate_guesswork(layout, seed=3, draws=FAST)),
        (top_1, simulate_top_1(layout, seed=3, draws=FAST)),
        (median_rank, simulate_median_rank(layout, seed=3, draws=FAST)),
        (lambda counts: tpr_at(counts, ONE_IN), simulate_tpr(layout, ONE_IN, seed=3, draws=FAST)),
    ):
        means = torch.tensor([sum(map(figure, of)) / len(of) for of in slow], dtype=torch.float64)
        # Two-sample Kolmogorov-Smirnov: 1.95 sqrt(1 / a + 1 / b) is exceeded once in a thousand by equal distributions.
        grid = torch.cat((fast, means))
        gap = [torch.searchsorted(part.sort().values + 1e-9, grid, right=False) / len(part) for part in (fast, means)]
        assert float((gap[0] - gap[1]).abs().max()) < 1.95 * math.sqrt(1 / DRAWS + 1 / FAST), figure


@pytest.mark.parametrize("kind", LAYOUTS)
def test_the_deviation_of_the_auc_is_that_of_whole_random_grids(kind: str) -> None:
    layout = layout_of(kind)
    means = torch.tensor([sum(map(reid_auc, of)) / len(of) for of in whole_grids(kind)], dtype=torch.float64)
    # The deviation of 150 draws that are nearly normal errs by 1 / sqrt(300); four times that.
    assert float(means.std()) == pytest.approx(chance_sd(layout), rel=4 / math.sqrt(2 * DRAWS))
    assert abs(float(means.mean()) - 0.5) < 4 * chance_sd(layout) / math.sqrt(DRAWS)


def test_a_sample_with_few_of_the_rows_finds_its_share() -> None:
    # One person has 98 % of the rows, and is not in the sample.
    n, held, draws = 100, 2, 300
    rows = np.arange(n)[None] >= n - held
    found = simulate_top_1(Layout((n, n), diagonal(n).numpy(), rows, rows), seed=0, draws=draws)
    assert abs(float(found.mean()) - 1 / held) < 3 * float(found.std()) / math.sqrt(draws)


def test_one_whole_sample_has_the_deviation_of_mann_and_whitney() -> None:
    p, q = 7, 9 * 7 - 7
    layout = Layout((9, 7), diagonal(7).numpy(), np.ones((1, 9), dtype=bool), np.ones((1, 7), dtype=bool))
    assert chance_sd(layout) == pytest.approx(math.sqrt((p + q + 1) / (12 * p * q)))


def test_simulated_guesswork_has_the_closed_mean_and_law() -> None:
    n, draws = 50, 2000
    layout = Layout((n, n), diagonal(n).numpy(), np.ones((1, n), dtype=bool), np.ones((1, n), dtype=bool))
    found = simulate_guesswork(layout, seed=1, draws=draws)
    assert abs(float(found.mean()) - (n * n + 1) / (n + 1)) < 4 * float(found.std()) / math.sqrt(draws)
    for guesses in (1, 10, 50, 150):
        chance = first_hit_within(guesses, n * n, n)
        share = float((found <= guesses).double().mean())
        assert abs(share - chance) < 4 * math.sqrt(chance * (1 - chance) / draws)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 8))
def test_the_law_of_the_first_hit_is_that_of_all_orders(pairs: int, links: int, guesses: int) -> None:
    links = min(links, pairs)
    orders = list(combinations(range(pairs), links))
    early = sum(min(places) < guesses for places in orders)
    assert first_hit_within(guesses, pairs, links) == pytest.approx(float(Fraction(early, len(orders))), abs=1e-12)


@pytest.mark.parametrize("linked", [1, 5, 30])
def test_chance_tpr_is_the_mean_over_orders(linked: int) -> None:
    random, unlinked, one_in = np.random.default_rng(2), 90, 20
    allowed = unlinked // one_in
    shares = []
    for _ in range(2000):
        order = random.permutation(linked + unlinked)
        bar = np.sort(order[linked:])[allowed]
        shares.append(float((order[:linked] < bar).mean()))
    error = np.std(shares) / math.sqrt(len(shares))
    assert abs(np.mean(shares) - chance_tpr(unlinked, one_in)) < 4 * error


def test_more_keys_narrow_the_interval() -> None:
    draws = simulate_guesswork(layout_of("one to one"), seed=1, draws=FAST)
    one, ten = (chance_of_mean(draws, keys=keys, mean=9.0, seed=2) for keys in (1, 10))
    assert one.low < ten.low < float(draws.mean()) < ten.high < one.high


def test_many_samples_are_told_apart_in_batches_of_the_same_mean() -> None:
    layout = layout_of("one to one")
    again = Layout(layout.shape, layout.links, layout.rows.repeat(5, axis=0), layout.cols.repeat(5, axis=0))
    once, often = (simulate_guesswork(each, seed=4, draws=1000) for each in (layout, again))
    error = math.sqrt((float(once.var()) + float(often.var())) / 1000)
    assert abs(float(once.mean()) - float(often.mean())) < 4 * error


def test_p_counts_what_is_as_bad_for_the_owner_and_is_never_zero() -> None:
    draws = torch.arange(1.0, 100.0)
    assert one_sided(draws, 1000.0, better="lower") == one_sided(draws, 0.0, better="higher") == pytest.approx(0.01)
    assert one_sided(draws, 0.0, better="lower") == one_sided(draws, 1000.0, better="higher") == 1.0
    assert one_sided(draws, 50.0, better="lower") == pytest.approx(0.51)
    assert one_sided(torch.full((99,), 3.0), 3.0, better="lower") == 1.0


def test_a_permutation_test_ranks_the_own_figures_among_all_choices() -> None:
    # The own figure is the least of 4 in each of 2 keys: the least sum of 16.
    permuted = [[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]
    p = permutation_p([0.0, 0.0], permuted, better="higher", seed=0)
    assert p == pytest.approx(1 / 16, abs=4 * math.sqrt(1 / 16 / 9999))
    assert permutation_p([0.0, 0.0], permuted, better="lower", seed=0) == 1.0
    assert permutation_p([2.0, 2.0], [[2.0] * 3, [2.0] * 3], better="lower", seed=0) == 1.0


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_a_permutation_test_goes_below_what_its_draws_resolve(better: Literal["higher", "lower"]) -> None:
    # The own figure is the only one so low among 10 in each of 10 keys: one choice of 10^10.
    sign = 1 if better == "higher" else -1
    permuted = [[sign * (500.0 + 7 * key + number) for number in range(9)] for key in range(10)]
    assert permutation_p([float(sign)] * 10, permuted, better=better, seed=0) == pytest.approx(1e-10, rel=1e-3)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 4), st.integers(2, 6), st.integers(0, 10_000))
def test_the_bound_of_a_permutation_test_is_above_the_exact_share(keys: int, choices: int, seed: int) -> None:
    table = torch.randn(keys, choices, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    sums = torch.tensor([sum(chosen) for chosen in product(*table.tolist())])
    exact = float((sums <= float(table[:, 0].sum()) + 1e-6).double().mean())
    assert null._least_bound(table) >= exact * (1 - 1e-9)
