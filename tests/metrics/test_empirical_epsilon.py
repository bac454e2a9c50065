from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom

from bench.evidence import AuditEvidence
from bench.statistics.epsilon_bounds import clopper_pearson, lower_bound
from bench.types import PrivacyClaim
from metrics.empirical_epsilon import EmpiricalEpsilon


def evidence(
    hits: int, false_alarms: int, trials: int, *, delta: float = 0.0, confidence: float = 0.95
) -> AuditEvidence:
    claim = PrivacyClaim("image", 1.0, delta, "none", "a test")
    return AuditEvidence(claim, trials, hits, false_alarms, confidence)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 100_000), st.floats(0, 1), st.sampled_from([0.001, 0.025, 0.05, 0.2]))
def test_bounds_are_quantiles_of_beta_distributions(trials: int, share: float, level: float) -> None:
    hits = round(share * trials)
    low, high = clopper_pearson(hits, trials, level)
    assert low == pytest.approx(beta.ppf(level, hits, trials - hits + 1) if hits else 0, rel=1e-9)
    assert high == pytest.approx(beta.ppf(1 - level, hits + 1, trials - hits) if hits < trials else 1, rel=1e-9)


@pytest.mark.parametrize("trials", [1, 2, 5, 9])
@pytest.mark.parametrize("level", [0.025, 0.1])
def test_each_bound_errs_at_most_at_its_level_whatever_the_probability(trials: int, level: float) -> None:
    hits = np.arange(trials + 1)
    low, high = clopper_pearson(hits, trials, level)
    for chance in np.linspace(0, 1, 401):
        weight = binom.pmf(hits, trials, chance)
        assert weight[low > chance].sum() <= level + 1e-12
        assert weight[high < chance].sum() <= level + 1e-12


@pytest.mark.parametrize(("found", "alarm"), [(0.5, 0.5 * math.exp(-1)), (0.9, 0.1), (0.05, 0.03)])
def test_the_lower_bound_holds_with_its_confidence_over_all_outcomes(found: float, alarm: float) -> None:
    trials, counts = 25, np.arange(26)
    hits, false_alarms = (each.ravel() for each in np.meshgrid(counts, counts))
    weight = binom.pmf(hits, trials, found) * binom.pmf(false_alarms, trials, alarm)
    bounds = lower_bound(hits, false_alarms, trials, delta=0.0, confidence=0.9)
    assert weight[bounds > math.log(found / alarm)].sum() <= 0.1


def test_a_hand_made_case_has_its_value() -> None:
    # Of one trial a hit has probability above 0.025 with 97.5 % confidence, a false alarm's absence below 0.975.
    assert lower_bound(1, 0, 1, delta=0.0, confidence=0.95) == pytest.approx(math.log(0.025 / 0.975))


def test_delta_is_taken_from_the_hits() -> None:
    low, high = clopper_pearson(80, 100, 0.025)[0], clopper_pearson(20, 100, 0.025)[1]
    assert EmpiricalEpsilon()(evidence(80, 20, 100, delta=0.3)).value == pytest.approx(math.log((low - 0.3) / high))
    assert EmpiricalEpsilon()(evidence(80, 20, 100, delta=0.75)).value == 0


def test_the_figure_is_the_lower_bound_below_its_ceiling() -> None:
    score = EmpiricalEpsilon()(evidence(900, 300, 1000))
    assert score.low == score.value
    assert score.high is not None
    assert score.value < math.log(3) < score.high
    least = 0.025 ** (1 / 1000)  # all of a thousand
    assert score.parts["ceiling"].value == pytest.approx(math.log(least / (1 - least)))
    assert score.n == 1000


def test_nothing_shown_is_zero_and_says_so() -> None:
    score = EmpiricalEpsilon()(evidence(10, 900, 1000))
    assert (score.value, score.low, score.high) == (0, 0, 0)
    assert "nothing was shown" in score.note


def test_without_a_false_alarm_the_other_end_is_open() -> None:
    score = EmpiricalEpsilon()(evidence(1000, 0, 1000))
    assert score.value == score.parts["ceiling"].value
    assert score.high is None
    assert "no false alarm" in score.note


def test_more_confidence_shows_less() -> None:
    bounds = [EmpiricalEpsilon()(evidence(700, 200, 1000, confidence=level)).value for level in (0.9, 0.95, 0.99)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[2]
