"""Marginals, correlations and regressions of a table and its release."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import binom, ks_2samp
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from bench.evidence import TableEvidence
from bench.statistics import bootstrap as two_samples
from bench.statistics.bootstrap import MATCHED, Comparison, correlations, matched
from bench.types import Metric, NotApplicable, Score
from metrics.table_columns import (
    RIDGE,
    ColumnR2,
    CorrelationDistance,
    MarginalDistance,
    kolmogorov_smirnov,
    predictions,
)

METRICS: tuple[Metric[TableEvidence], ...] = (MarginalDistance(), CorrelationDistance(), ColumnR2())
NAMES = ("a", "b", "c", "d")


def table(n: int, seed: int) -> torch.Tensor:
    """(n, 4): two columns that go together, one of whole numbers from 0 to 2, one far from 0."""
    random = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, 4, generator=random)
    rows[:, 1] = rows[:, 0] + 0.5 * rows[:, 1]
    rows[:, 2] = torch.randint(3, (n,), generator=random).float()
    rows[:, 3] = 100 + 7 * rows[:, 3]
    return rows


def evidence(released: torch.Tensor, original: torch.Tensor | None = None, seed: int = 1) -> TableEvidence:
    return TableEvidence(table(200, 0) if original is None else original, released, table(100, 2), NAMES, seed)


def chance(score: Score) -> float:
    assert score.p is not None
    return score.p


def interval(score: Score) -> tuple[float, float]:
    assert score.low is not None
    assert score.high is not None
    return score.low, score.high


def test_the_kolmogorov_smirnov_distance_is_that_of_scipy_ties_and_all() -> None:
    original, released = table(200, 0), table(90, 1) * 1.3
    values = kolmogorov_smirnov(original, released, seed=0).values
    twin = [ks_2samp(original[:, k].numpy(), released[:, k].numpy()).statistic for k in range(4)]
    np.testing.assert_allclose(values.numpy(), twin, rtol=0, atol=1e-12)


def test_correlations_are_those_of_numpy() -> None:
    rows = table(200, 0)
    np.testing.assert_allclose(correlations(rows).numpy(), np.corrcoef(rows.double().numpy().T), atol=1e-12)


def test_a_constant_column_correlates_with_nothing() -> None:
    rows = table(50, 0)
    rows[:, 3] = 0.1
    found = correlations(rows)
    assert found.isfinite().all()
    assert (found[3] == 0).all()


def test_one_inverse_gives_the_ridge_regressions_of_scikit_learn() -> None:
    train, test = table(200, 0).double().numpy(), table(100, 2).double().numpy()
    found = predictions(torch.from_numpy(train), torch.from_numpy(test)).numpy()
    mean, std = train.mean(axis=0), train.std(axis=0)
    for k in range(4):
        others = [j for j in range(4) if j != k]
        units, asked = (train - mean) / std, (test - mean) / std
        twin = Ridge(alpha=RIDGE).fit(units[:, others], units[:, k]).predict(asked[:, others])
        np.testing.assert_allclose(found[:, k], mean[k] + std[k] * twin, atol=1e-9)


def test_r2_is_that_of_scikit_learn_by_column_and_its_mean() -> None:
    score = ColumnR2()(evidence(table(150, 3)))
    twin = r2_score(table(100, 2), predictions(table(150, 3), table(100, 2)), multioutput="raw_values")
    np.testing.assert_allclose([score.parts[name].value for name in NAMES], twin, atol=1e-5)
    assert math.isclose(score.value, float(np.mean(twin)), abs_tol=1e-5)


def test_the_table_itself_is_at_distance_nought_and_teaches_what_the_original_does() -> None:
    same = evidence(table(200, 0)[torch.randperm(200, generator=torch.Generator().manual_seed(0))])
    for metric in (MarginalDistance(), CorrelationDistance()):
        score = metric(same)
        assert abs(score.value) < 1e-12
        assert chance(score) < 0.01  # closer than two samples of one population
    score = ColumnR2()(same)
    assert math.isclose(score.value, score.parts["trained on the original"].value, rel_tol=1e-9)


def test_two_samples_of_one_population_seldom_look_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 25 pairs of samples each metric calls 5 % apart; more than the 99.9 % quantile of that is a fault."""
    monkeypatch.setattr(two_samples, "DRAWS", 99)
    most = binom.ppf(0.999, 25, 0.05)
    for metric in (MarginalDistance(), CorrelationDistance()):
        found = [metric(evidence(table(60, 2 * k + 100), table(60, 2 * k + 101), seed=k)) for k in range(25)]
        assert sum(chance(score) < 0.05 for score in found) <= most


def test_a_shift_by_a_deviation_is_seen_where_it_is_and_only_there() -> None:
    moved = table(200, 5)
    moved[:, 0] += 1
    score = MarginalDistance()(evidence(moved))
    assert chance(score.parts["a"]) < 0.01
    assert abs(score.parts["a"].value - 0.383) < 2 * 0.1  # 2 Phi(1/2) - 1, and twice the bound of a share's deviation
    assert all(score.parts[name].value < score.parts["a"].value / 2 for name in "bcd")


def test_columns_that_are_shuffled_apart_lose_their_correlation_but_not_their_marginals() -> None:
    random = torch.Generator().manual_seed(0)
    apart = torch.stack([column[torch.randperm(200, generator=random)] for column in table(200, 0).T], dim=1)
    marginal, correlation = MarginalDistance()(evidence(apart)), CorrelationDistance()(evidence(apart))
    assert marginal.value == 0
    assert chance(correlation) < 0.05
    assert correlation.value > 0.1
    assert ColumnR2()(evidence(apart)).value < ColumnR2()(evidence(table(200, 0))).value - 0.2


def test_other_units_are_seen_but_not_after_matching() -> None:
    units = (table(200, 0) - 3) / torch.tensor([5.0, 0.1, 2.0, 40.0])
    marginal, r2 = MarginalDistance()(evidence(units)), ColumnR2()(evidence(units))
    assert marginal.value > 0.3
    assert marginal.parts[MATCHED].value < 0.011  # one row of 200 may be rounded to the other side
    assert CorrelationDistance()(evidence(units)).value < 1e-6
    assert abs(r2.parts[MATCHED].value - r2.parts["trained on the original"].value) < 1e-5
    assert r2.value < r2.parts[MATCHED].value - 1


def test_matching_takes_a_constant_column_to_the_mean() -> None:
    found = matched(torch.full((5, 4), 3.1), table(200, 0))
    assert torch.allclose(found, table(200, 0).double().mean(dim=0).expand(5, -1))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_constant_release_of_few_rows_has_figures(metric: Metric[TableEvidence]) -> None:
    score = metric(evidence(torch.ones(3, 4)))
    low, high = interval(score)
    assert low <= score.value <= high


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_the_same_evidence_gives_the_same_score(metric: Metric[TableEvidence]) -> None:
    assert metric(evidence(table(90, 4))) == metric(evidence(table(90, 4)))


def noisy(rows: torch.Tensor, seed: int) -> torch.Tensor:
    return rows + 2 * torch.randn(rows.shape, generator=torch.Generator().manual_seed(seed))


def test_the_interval_takes_the_bias_of_resampling_off() -> None:
    drawn = torch.linspace(0.3, 0.5, 201, dtype=torch.float64)[:, None]
    score = Comparison(torch.tensor([0.35], dtype=torch.float64), drawn, torch.zeros(9, 1).double(), 5).score()
    assert math.isclose(score.value, 0.35)
    low, high = interval(score)
    assert math.isclose(low, 0.7 - 0.495)
    assert math.isclose(high, 0.7 - 0.305)
    assert math.isclose(chance(score), 2 / 10)


def test_an_interval_goes_neither_below_nought_nor_past_its_figure() -> None:
    drawn = torch.linspace(0.3, 0.5, 201, dtype=torch.float64)[:, None]
    score = Comparison(torch.tensor([0.1], dtype=torch.float64), drawn, torch.full((9, 1), 0.2).double(), 5).score()
    assert interval(score) == (0.0, score.value)


def test_the_interval_of_r2_is_about_the_test_rows() -> None:
    release, everyone = noisy(table(200, 8), 1), table(20_000, 9)
    truth = r2_score(everyone, predictions(release, everyone))
    found = [
        interval(ColumnR2()(TableEvidence(table(50, 0), release, table(150, 50 + k), NAMES, k))) for k in range(30)
    ]
    assert sum(low <= truth <= high for low, high in found) >= binom.ppf(0.001, 30, 0.95)


def test_r2_of_few_test_rows_has_an_interval_of_ordinary_numbers() -> None:
    test = torch.tensor([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]])  # one draw in 27 holds the mean of a column alone
    score = ColumnR2()(TableEvidence(table(50, 0)[:, :2], table(50, 1)[:, :2], test, ("a", "b"), 0))
    low, high = interval(score)
    assert -1000 < low <= score.value <= high <= 1


def test_what_cannot_be_compared_is_not_applicable() -> None:
    flat = torch.ones(20, 4)
    with pytest.raises(NotApplicable, match="two columns that vary"):
        CorrelationDistance()(evidence(table(20, 1), flat))
    with pytest.raises(NotApplicable, match="test rows"):
        ColumnR2()(TableEvidence(table(20, 0), table(20, 1), flat, NAMES, 0))
