from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import beta, binom, norm

from bench.evidence import AuditEvidence, Calls
from bench.statistics.confidence_intervals import clopper_pearson
from bench.statistics.epsilon_bounds import gaussian_bound, gaussian_epsilon, lower_bound, one_run_bound
from bench.types import PrivacyClaim
from metrics.empirical_epsilon import EmpiricalEpsilon


def evidence(
    correct: int, guesses: int, trials: int, *, delta: float = 0.0, confidence: float = 0.95, one_run: bool = False,
    neighbours: Literal["replaced", "added"] = "replaced",
) -> AuditEvidence:  # fmt: skip
    claim = PrivacyClaim("image", 1.0, delta, "none", "a test", neighbours=neighbours)
    calls = Calls(trials, trials // 2, correct, guesses - correct, 0, 0)
    return AuditEvidence(claim, calls, confidence, one_run=one_run)


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


@pytest.mark.parametrize(("epsilon", "abstains"), [(0.5, 0.0), (1.0, 0.5), (3.0, 0.9)])
def test_the_lower_bound_holds_with_its_confidence_over_all_outcomes(epsilon: float, abstains: float) -> None:
    trials, chance = 25, 1 / (1 + math.exp(-epsilon))
    guesses, correct = (each.ravel() for each in np.meshgrid(np.arange(26), np.arange(26)))
    made = correct <= guesses
    weight = binom.pmf(guesses, trials, 1 - abstains) * binom.pmf(correct, guesses, chance)
    bounds = lower_bound(correct[made], guesses[made], trials, delta=0.0, confidence=0.9)
    assert weight[made][bounds > epsilon].sum() <= 0.1


@pytest.mark.parametrize("delta", [0.01, 0.2])
def test_the_lower_bound_holds_where_some_releases_give_all_away(delta: float) -> None:
    # The worst mechanism of all: it gives the coin away with probability delta, and answers by chance otherwise. Eve
    # guesses where it was given away, and at a fifth of the others.
    epsilon, trials, repeats = 0.7, 200, 20_000
    random = np.random.default_rng(0)
    given = random.binomial(trials, delta, repeats)
    others = random.binomial(trials - given, 0.2)
    correct = given + random.binomial(others, 1 / (1 + math.exp(-epsilon)))
    bounds = lower_bound(correct, given + others, trials, delta=delta, confidence=0.9)
    assert (bounds > epsilon).mean() <= 0.1


def test_a_hand_made_case_has_its_value() -> None:
    # One correct guess of one has the chance 5 % where a guess is correct with that chance.
    assert lower_bound(1, 1, 1, delta=0.0, confidence=0.95) == pytest.approx(math.log(0.05 / 0.95))


def test_the_bounds_of_the_laplace_mechanism_are_as_tight_as_published() -> None:
    # Releases of 0 or 1 with Laplace noise of scale 1; no guess between the two.
    trials, q = 4000, 1 / (1 + math.exp(-1))
    guesses = round(trials * 0.5 * (1 + math.exp(-1)))
    assert float(lower_bound(round(q * guesses), guesses, trials, delta=0.0, confidence=0.95)) > 0.925
    assert float(lower_bound(trials, trials, trials, delta=0.0, confidence=0.95)) == pytest.approx(7.2, abs=0.01)


def test_a_bound_for_one_run_is_that_for_many_without_delta() -> None:
    for correct in (60, 75, 100):
        one = one_run_bound(correct, 100, 300, delta=0.0, confidence=0.95)
        assert one == pytest.approx(float(lower_bound(correct, 100, 300, delta=0.0, confidence=0.95)), abs=1e-4)


@pytest.mark.parametrize(
    ("correct", "guesses", "expected"),
    [(49, 64, 0.999), (53, 64, 1.532), (213, 256, 2.382), (118, 128, 3.260), (512, 512, 11.186)],
)
def test_gaussian_bounds_of_one_run_are_as_published(correct: int, guesses: int, expected: float) -> None:
    # 512 coins, delta 1e-5, 95 %: values of Mahloujifar et al. 2024 by an implementation of others.
    found = one_run_bound(correct, guesses, 512, delta=1e-5, confidence=0.95, family="Gaussian")
    assert found == pytest.approx(expected, abs=5e-4)
    halved = one_run_bound(correct, guesses, 512, delta=1e-5, confidence=0.95, family="Gaussian", steps=2)
    assert 0 < halved < found / 2


def test_the_gaussian_bound_of_one_run_holds_with_its_confidence() -> None:
    mu, coins, delta, repeats = 1.0, 256, 1e-5, 400
    random = np.random.default_rng(4)
    true, wrong = gaussian_epsilon(mu, delta), 0
    for _ in range(repeats):
        first = random.random(coins) < 0.5
        order = first[np.argsort(random.normal(size=coins) + mu * first)]
        correct = int((~order[:16]).sum() + order[-16:].sum())
        wrong += one_run_bound(correct, 32, coins, delta=delta, confidence=0.95, family="Gaussian") > true
    assert wrong <= binom.ppf(0.999, repeats, 0.05)


def test_epsilon_of_gaussian_privacy_solves_its_equation() -> None:
    for mu, delta in ((0.27, 1e-5), (2.0, 1e-5), (8.0, 1e-3)):
        epsilon = gaussian_epsilon(mu, delta)
        left = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
        assert left == pytest.approx(delta, rel=1e-3)


def test_a_large_delta_is_paid_less_for_by_the_trade_off_function() -> None:
    # Theorem 5.2 shows nothing of 192 of 256 guesses at 4,096 coins and a delta of .001.
    found = one_run_bound(192, 256, 4096, delta=1e-3, confidence=0.95)
    assert 0.5 < found < one_run_bound(192, 256, 4096, delta=0.0, confidence=0.95)


def test_a_gaussian_family_needs_a_delta() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        PrivacyClaim("image", 1.0, 0.0, "none", "a test", family="Gaussian")
    with pytest.raises(ValueError, match="between 0 and 1, got 0"):
        one_run_bound(9, 10, 10, delta=0.0, confidence=0.95, family="Gaussian")


def test_coins_that_include_rows_are_one_step_apart() -> None:
    stated = PrivacyClaim("image", 1.0, 1e-6, "none", "a test", neighbours="added")
    calls = Calls(512, 256, 120, 8, 8, 120)
    included, replaced = (
        EmpiricalEpsilon()(AuditEvidence(stated, calls, 0.95, one_run=True, coins=use)).value
        for use in ("include", "replace")
    )
    assert included == pytest.approx(one_run_bound(240, 256, 512, delta=1e-6, confidence=0.95))
    assert replaced < included / 2 + 0.05


def test_reach_and_the_black_box_game_stand_beside_the_bound() -> None:
    stated = PrivacyClaim("image", 1.0, 1e-5, "none", "a test", neighbours="added", family="Gaussian")
    calls, weaker = Calls(512, 256, 120, 8, 8, 120), Calls(128, 64, 20, 12, 12, 20)
    evidence = AuditEvidence(stated, calls, 0.95, one_run=True, coins="include", black_box=weaker, reach=0.7)
    parts = EmpiricalEpsilon()(evidence).parts
    assert parts["reach"].value == 0.7
    assert parts["black-box"].value < parts["black-box ceiling"].value < parts["ceiling"].value
    assert parts["black-box"].n == 128


def test_the_bound_for_one_run_holds_where_one_chance_gives_all_coins_away() -> None:
    # With probability delta everything is published: no guess is wrong then, and theorem 5.2 allows for it.
    epsilon, delta, coins, repeats = 1.0, 0.002, 50, 400
    random = np.random.default_rng(1)
    correct = random.binomial(coins, 1 / (1 + math.exp(-epsilon)), repeats)
    correct[random.random(repeats) < delta] = coins
    wrong = sum(one_run_bound(int(found), coins, coins, delta=delta, confidence=0.95) > epsilon for found in correct)
    assert wrong <= binom.ppf(0.999, repeats, 0.05)
    without, some = (one_run_bound(coins, coins, coins, delta=part, confidence=0.95) for part in (0.0, 1e-4))
    assert some < without


def test_two_steps_between_inputs_halve_the_bound() -> None:
    one, two = (one_run_bound(95, 100, 100, delta=0.0, confidence=0.95, steps=steps) for steps in (1, 2))
    assert two == pytest.approx(one / 2, abs=1e-4)
    added = EmpiricalEpsilon()(evidence(950, 1000, 1000, neighbours="added")).value
    assert added == pytest.approx(EmpiricalEpsilon()(evidence(950, 1000, 1000)).value / 2)


def test_gaussian_noise_is_bounded_more_tightly_by_what_it_is() -> None:
    # Noise of deviation 2 on 0 or 1: mu is a half, whose epsilon at a delta of 1e-5 is 1.85.
    trials, delta = 2_000, 1e-5
    found, alarm = round(trials * norm.sf(-0.25)), round(trials * norm.sf(0.25))
    tight = gaussian_bound(found, trials, alarm, trials, delta=delta, confidence=0.95)
    loose = float(lower_bound(found + trials - alarm, 2 * trials, 2 * trials, delta=delta, confidence=0.95))
    assert loose < 0.4 < 1.3 < tight < 1.85
    score = EmpiricalEpsilon()(AuditEvidence(
        PrivacyClaim("image", 1.0, delta, "none", "a test"),
        Calls(2 * trials, trials, found, alarm, trials - found, trials - alarm), 0.95,
    ))  # fmt: skip
    assert score.parts["if Gaussian"].value == pytest.approx(tight)


def test_the_gaussian_bound_holds_with_its_confidence() -> None:
    mu, trials, delta, repeats = 0.5, 300, 1e-3, 1_000
    true = brentq(lambda e: norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - delta, 0, 10)
    random = np.random.default_rng(2)
    hits, alarms = (random.binomial(trials, norm.sf(side), repeats) for side in (-mu / 2, mu / 2))
    wrong = sum(
        gaussian_bound(int(hit), trials, int(alarm), trials, delta=delta, confidence=0.95) > true
        for hit, alarm in zip(hits, alarms, strict=True)
    )
    assert wrong <= binom.ppf(0.999, repeats, 0.05)


def test_delta_is_taken_from_the_correct_guesses() -> None:
    plain, forgiving = (EmpiricalEpsilon()(evidence(80, 100, 1000, delta=delta)).value for delta in (0.0, 0.01))
    assert plain > forgiving > 0
    assert EmpiricalEpsilon()(evidence(80, 100, 1000, delta=0.3)).value == 0


def test_the_figure_is_the_lower_bound_below_its_ceiling() -> None:
    score = EmpiricalEpsilon()(evidence(750, 1000, 2000))
    assert score.low == score.value
    assert score.high is not None
    assert score.value < math.log(3) < score.high
    least = 0.05 ** (1 / 2000)  # all of two thousand
    assert score.parts["ceiling"].value == pytest.approx(math.log(least / (1 - least)))
    assert score.n == 2000


def test_nothing_shown_is_zero_and_says_so() -> None:
    score = EmpiricalEpsilon()(evidence(10, 900, 1000))
    assert (score.value, score.low, score.high) == (0, 0, 0)
    assert "nothing was shown" in score.note


def test_without_a_wrong_guess_the_other_end_is_open() -> None:
    score = EmpiricalEpsilon()(evidence(1000, 1000, 1000))
    assert score.value == score.parts["ceiling"].value
    assert score.high is None
    assert "no guess was wrong" in score.note


def test_more_confidence_shows_less() -> None:
    bounds = [EmpiricalEpsilon()(evidence(700, 900, 1000, confidence=level)).value for level in (0.9, 0.95, 0.99)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[2]


def test_games_and_noise_checks_travel_with_the_figure() -> None:
    stated = PrivacyClaim("image", 1.0, 0.0, "none", "a test")
    calls = Calls(100, 50, 30, 20, 20, 30)
    score = EmpiricalEpsilon()(AuditEvidence(stated, calls, 0.95, games=("one", "other"), noise="fails"))
    assert (score.parts["games"].value, score.parts["games"].note) == (2, "one; other")
    assert score.parts["noise checks"].value == 0
    assert "noise checks" not in EmpiricalEpsilon()(AuditEvidence(stated, calls, 0.95)).parts
