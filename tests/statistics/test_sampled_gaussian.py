"""Trade-off functions of private trainings, against exact Gaussian ones, an accountant and simulated tests."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from bench.evidence import AuditEvidence, Calls
from bench.nets.private_training import account
from bench.statistics.confidence_intervals import lower_proportion
from bench.statistics.epsilon_bounds import family_of, gaussian_epsilon, one_run_bound, unexplained
from bench.statistics.epsilon_reach import ceiling, ideal_bound
from bench.statistics.sampled_gaussian import SampledGaussian
from bench.types import PrivacyClaim
from metrics.empirical_epsilon import EmpiricalEpsilon

DELTA = 1e-5
TRAINING, REPLACED, NOISE = SampledGaussian(0.25, 16), SampledGaussian(0.25, 16, replaced=True), 1.5


@pytest.mark.parametrize(("steps", "noise"), [(1, 1.0), (4, 2.8), (16, 15.0)])
def test_steps_of_all_rows_are_one_gaussian_step(steps: int, noise: float) -> None:
    family, mu = SampledGaussian(1.0, steps), math.sqrt(steps) / noise
    exact = gaussian_epsilon(mu, DELTA)
    assert 0.98 * exact < family.epsilon(noise, DELTA) <= exact
    for sides, share in (("both", 1.0), ("first", 0.5), ("second", 0.5)):
        least = family.least_wrong(noise, sides)  # type: ignore[arg-type]
        for right in (0.001, 0.01, 0.1, 0.3, 0.45):
            wrong = share * float(ndtr(ndtri(right / share) - mu))
            assert least(right) <= wrong
            assert least(right) == pytest.approx(wrong, rel=0.02, abs=1e-5)


@pytest.mark.parametrize(("rate", "steps", "noise"), [(0.25, 16, 0.84), (0.25, 16, 4.14), (0.05, 100, 1.0)])
def test_epsilon_is_that_of_an_accountant_or_a_little_less(rate: float, steps: int, noise: float) -> None:
    found, upper = SampledGaussian(rate, steps).epsilon(noise, DELTA), account(
        noise, DELTA, share=rate, steps=steps, error=0.01
    )  # fmt: skip
    assert upper - 0.03 * upper - 0.02 < found <= upper


def test_no_test_of_a_training_has_fewer_wrong_guesses_and_the_best_has_hardly_more() -> None:
    random, count = np.random.default_rng(0), 200_000

    def losses(included: bool) -> np.ndarray:
        inside = (random.random((TRAINING.steps, count)) < TRAINING.rate) & included
        sums = NOISE * random.standard_normal((TRAINING.steps, count)) + inside
        ratio = np.exp((2 * sums - 1) / (2 * NOISE**2))
        found: np.ndarray = np.log1p(TRAINING.rate * (ratio - 1)).sum(axis=0)
        return found

    first, second = losses(True), losses(False)
    for level in (0.5, 0.1, 0.01):
        edge = np.quantile(first, 1 - level)
        wrong = (second > edge).mean() / 2
        assert TRAINING.least_wrong(NOISE, "first")(level / 2) == pytest.approx(wrong, rel=0.1, abs=1e-4)
        edge = np.quantile(second, level)
        wrong = (first < edge).mean() / 2
        assert TRAINING.least_wrong(NOISE, "second")(level / 2) == pytest.approx(wrong, rel=0.1, abs=1e-4)


@pytest.mark.parametrize(("steps", "noise"), [(1, 2.0), (4, 5.6)])
def test_a_replaced_row_of_every_step_is_two_clips_apart(steps: int, noise: float) -> None:
    exact = gaussian_epsilon(2 * math.sqrt(steps) / noise, DELTA)
    found = SampledGaussian(1.0, steps, replaced=True).epsilon(noise, DELTA)
    assert 0.98 * exact < found <= exact


@pytest.mark.parametrize("cosine", [-1.0, 0.0, 0.9])
def test_no_test_of_a_replaced_row_has_fewer_wrong_guesses_whatever_its_gradients(cosine: float) -> None:
    random, count, steps = np.random.default_rng(0), 100_000, REPLACED.steps
    rows = np.array([[1.0, 0.0], [cosine, math.sqrt(1 - cosine**2)]])

    def losses(row: int) -> np.ndarray:
        whole = np.zeros(count)
        for _ in range(steps):
            inside = random.random(count) < REPLACED.rate
            sums = NOISE * random.standard_normal((count, 2)) + inside[:, None] * rows[row]
            here, there = np.exp((2 * sums @ rows.T - 1) / (2 * NOISE**2)).T
            whole += np.log1p(REPLACED.rate * (here - 1)) - np.log1p(REPLACED.rate * (there - 1))
        return whole

    first, second = losses(0), losses(1)
    for level in (0.5, 0.1, 0.01):
        wrong = (second > np.quantile(first, 1 - level)).mean() / 2
        least = REPLACED.least_wrong(NOISE, "first")(level / 2)
        assert least < 1.1 * wrong + 1e-4
        if cosine == -1:  # the best pair
            assert least == pytest.approx(wrong, rel=0.1, abs=1e-4)


def test_replaced_rows_are_told_apart_more_easily_than_added_ones_and_less_than_by_two_steps() -> None:
    added = TRAINING.epsilon(NOISE, DELTA)
    assert added < REPLACED.epsilon(NOISE, DELTA) < 2 * TRAINING.epsilon(NOISE, 1e-8)


def test_a_row_that_no_step_samples_leaves_no_trace() -> None:
    lost = (1 - TRAINING.rate) ** TRAINING.steps
    # Without noise, omitted rows are guessed wrongly as often as an included row is never sampled.
    assert TRAINING.least_wrong(0.1, "second")(0.499) == pytest.approx(lost / 2, rel=0.3)
    assert ceiling(512, delta=DELTA, confidence=0.95, family=TRAINING) > 15


def test_right_guesses_of_single_coins_are_a_binomial_number() -> None:
    # One coin a run: the chance of a right guess is at most ndtr(mu / 2).
    share = float(lower_proportion(170, 200, 0.05))
    exact = gaussian_epsilon(2 * float(ndtri(share)), DELTA)
    found = one_run_bound(170, 200, 200, delta=DELTA, confidence=0.95, family="Gaussian", runs=200)
    assert found == pytest.approx(exact, rel=1e-3)


def test_runs_that_count_by_themselves_show_more_of_a_large_epsilon() -> None:
    counts = 872, 880, 8140
    apart, together = (
        one_run_bound(*counts, delta=DELTA, confidence=0.95, family="Gaussian", sides="first", runs=runs)
        for runs in (110, 1)
    )
    assert 9 < apart < 10  # right guesses expected of the best test at 10
    assert together < 7


def test_guesses_of_runs_must_be_equal_and_of_a_known_family() -> None:
    with pytest.raises(ValueError, match="multiples of the runs, got 100, 31 and 10"):
        one_run_bound(30, 31, 100, delta=DELTA, confidence=0.95, family="Gaussian", runs=10)
    with pytest.raises(ValueError, match="count in one run, got 10"):
        one_run_bound(30, 30, 100, delta=DELTA, confidence=0.95, runs=10)
    with pytest.raises(ValueError, match="at most 512, got 600"):
        one_run_bound(1200, 1200, 4000, delta=DELTA, confidence=0.95, family="Gaussian", runs=2)
    with pytest.raises(ValueError, match="one step apart, got 2 steps"):
        one_run_bound(30, 30, 100, delta=DELTA, confidence=0.95, family=TRAINING, steps=2)


def test_a_claim_states_rate_and_steps_of_a_private_training_together() -> None:
    claim = PrivacyClaim("image", 1.0, DELTA, "none", "a test", neighbours="added", family="Gaussian")
    assert family_of(claim) == "Gaussian"
    stated = replace(claim, sampling_rate=0.25, steps=16)
    assert family_of(stated) == TRAINING
    assert family_of(replace(stated, neighbours="replaced")) == REPLACED
    for wrong, message in (
        ({"steps": 16}, "belong together, got None and 16"),
        ({"sampling_rate": 0.0, "steps": 16}, "sampling_rate must be in"),
        ({"sampling_rate": 0.25, "steps": 10**9}, "steps must be in"),
        ({"sampling_rate": 0.25, "steps": 16, "family": "any"}, "need family Gaussian, got any"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(claim, **wrong)  # type: ignore[arg-type]


def test_more_coins_reach_further_and_never_beyond_the_claim() -> None:
    few, many = (
        ideal_bound(6.0, coins, delta=DELTA, confidence=0.95, family=TRAINING, each=64) for coins in (512, 4096)
    )
    assert few < many < 6.0


@pytest.mark.parametrize(("rate", "steps"), [(1e-6, 1), (1e-6, 9), (1e-5, 1)])
def test_a_stated_rate_that_guesses_refute_does_not_switch_the_audit_off(rate: float, steps: int) -> None:
    claim = PrivacyClaim("image", 1.0, DELTA, "none", "a test", neighbours="added", family="Gaussian")
    small = replace(claim, sampling_rate=rate, steps=steps)
    every, some, none = (Calls(512, 256, right, wrong, wrong, right) for right, wrong in ((256, 0), (180, 76), (0, 0)))
    for calls in (every, some):
        usual, found = (
            EmpiricalEpsilon()(AuditEvidence(stated, calls, 0.95, one_run=True, coins="include"))
            for stated in (claim, small)
        )
        assert found.value == usual.value > 1
        assert found.parts["ceiling"].value == usual.parts["ceiling"].value > 11
        assert "stated sampling rate and steps are refuted" in found.note
        assert "refuted" not in usual.note
    silent = EmpiricalEpsilon()(AuditEvidence(small, none, 0.95, one_run=True, coins="include"))
    assert silent.value == 0
    assert silent.parts["ceiling"].value > 11
    assert "refuted" not in silent.note


def test_more_right_guesses_show_no_less_if_they_refute_the_stated_rate() -> None:
    for family in (SampledGaussian(2e-5, 1), SampledGaussian(1e-3, 10), SampledGaussian(0.04, 1)):
        bounds = [
            one_run_bound(correct, 512, 512, delta=DELTA, confidence=0.95, family=family) for correct in (300, 400, 512)
        ]
        assert bounds == sorted(bounds)
        assert 11 < bounds[-1] <= 60


def test_a_training_of_the_stated_rate_without_noise_does_not_refute_it() -> None:
    counts = 500, 512, 512
    assert not unexplained(TRAINING, *counts, confidence=0.95)
    assert unexplained(SampledGaussian(0.01, 1), *counts, confidence=0.95)
    lost = (1 - TRAINING.rate) ** TRAINING.steps
    for sides in ("both", "first", "second"):
        least = TRAINING.least_wrong(0.0, sides)  # type: ignore[arg-type]
        assert [least(right) <= TRAINING.least_wrong(0.01, sides)(right) for right in (0.1, 0.4, 0.499)] == [True] * 3  # type: ignore[arg-type]
    assert TRAINING.least_wrong(0.0, "second")(0.5) == pytest.approx(lost / 2)


def test_small_rates_warn_of_no_overflow() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SampledGaussian(1e-6, 9).epsilon(1e-4, DELTA) == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": 16.0}, "steps must be a whole number, got 16.0"), ({"steps": True}, "whole number, got True"),
        ({"sampling_rate": True}, "sampling_rate must be a number .*, got True"),
        ({"sampling_rate": "1"}, "sampling_rate must be a number .*, got '1'"),
    ],
)  # fmt: skip
def test_rate_and_steps_are_numbers(wrong: dict[str, object], message: str) -> None:
    claim = PrivacyClaim("image", 1.0, DELTA, "none", "a test", neighbours="added", family="Gaussian")
    with pytest.raises(TypeError, match=message):
        replace(replace(claim, sampling_rate=0.25, steps=16), **wrong)  # type: ignore[arg-type]
