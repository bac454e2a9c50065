from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from made.interval_coverage import covered, predictions, simulated
from scipy.stats import binom, t

from bench.evidence import UtilityEvidence
from bench.results.records import score_record
from bench.statistics.confidence_intervals import (
    around,
    at_least_binomial,
    clopper_pearson,
    components,
    difference,
    mid_p,
    never_certain,
    one_of_many,
    with_interval,
)
from bench.types import Replicates, Score
from metrics.utility_auc import UtilityAUC


def replicates(by_key: list[float], resampled: list[list[float]], **more: object) -> Replicates:
    return Replicates(by_key, resampled, 9, **{"people": "0" * 16, **more})  # type: ignore[arg-type]


def test_the_components_are_those_of_a_table_in_two_ways() -> None:
    # Resamples move both keys alike by -1, 0, 1; the second key is 4 above the first; nothing else moves.
    found = components(replicates([2.0, 6.0], [[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]]))
    assert (found.people, found.between, found.shared) == (1.0, 8.0, 0.0)
    assert found.width() == pytest.approx(math.sqrt(t.ppf(0.975, 9) ** 2 * 1 + t.ppf(0.975, 1) ** 2 * 8 / 2))
    assert found.prediction == pytest.approx(t.ppf(0.975, 1) * math.sqrt(8 * 1.5))


def test_what_moves_in_one_key_alone_is_counted_once() -> None:
    # Interaction alone: of the variance over keys, what resamples show as well is taken off.
    random = np.random.default_rng(0)
    resampled = random.standard_normal((50, 400))
    found = components(replicates(list(random.standard_normal(50)), resampled.tolist()))
    assert found.shared == pytest.approx(1, rel=0.05)
    assert found.people == pytest.approx(1 / 50, rel=0.3)
    # Of 49 degrees: a deviation of 20 % of the variance over keys.
    assert found.error**2 == pytest.approx(1 / 50, rel=1.0)


def test_one_key_leaves_out_what_keys_vary_and_says_so() -> None:
    score = with_interval(Score(2.0, None, None, 9), replicates([2.0], [[1.0, 2.0, 3.0]]), over="test people")
    assert score.low == pytest.approx(2 - t.ppf(0.975, 9))
    assert score.prediction_low is score.prediction_high is None
    assert "what keys and trainings vary is left out" in score.note


def test_guesses_are_compared_by_their_ratios() -> None:
    whole = replicates([100.0, 200.0], [[40.0, 50.0], [80.0, 100.0]], scale="log")
    tenth = replicates([10.0, 20.0], [[4.0, 5.0], [8.0, 10.0]], scale="log")
    assert components(whole) == pytest.approx(components(tenth))
    made = difference(whole, tenth)
    assert made.by_key == pytest.approx([math.log(10)] * 2)
    assert components(made).width() == pytest.approx(0, abs=1e-12)


TWO = [[1.0, 2.0]] * 2


@pytest.mark.parametrize("other", [
    replicates([1.0], TWO[:1]), replicates([1.0, 2.0], TWO, people="1" * 16), replicates([1.0, 2.0], TWO, people=""),
    replicates([1.0, 2.0], TWO, scale="log"),
])  # fmt: skip
def test_figures_of_other_people_or_keys_are_not_compared(other: Replicates) -> None:
    with pytest.raises(ValueError, match="the same resamples, as many keys and one scale"):
        difference(replicates([1.0, 2.0], TWO), other)


def test_a_share_stays_a_share_and_no_hit_is_no_proof() -> None:
    low, high = around(0.98, 5.0, "share")
    assert 0 < low < 0.98 < high < 1
    none = with_interval(Score(0.0, None, None, 9), replicates([0.0], [[0.0, 0.0]], scale="share"), over="people")
    assert (none.low, none.high) == (0.0, 0.0)
    assert at_least_binomial(none, 60).high == pytest.approx(1 - 0.05 ** (1 / 60))


def test_replicates_survive_a_record() -> None:
    found = replicates([0.5, 0.75], [[0.25, 0.5, 0.125], [0.75, 1.0, 0.5]], scale="share")
    made = score_record(with_interval(Score(0.625, None, None, 9), found, over="people"), better="lower", unit="AUC")
    assert made.replicates is not None
    assert made.replicates.read() == found
    assert made.prediction_low is not None
    assert made.prediction_low < made.low  # type: ignore[operator]


@pytest.mark.parametrize("resampled", [[[1.0, 2.0]], [[1.0], [2.0]], [[1.0, 2.0], [1.0]]])
def test_a_ragged_table_is_refused(resampled: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="as many under each"):
        replicates([1.0, 2.0], resampled)


@pytest.mark.parametrize(("keys", "effect"), [(3, 0.0), (5, 0.4)])
def test_intervals_hold_the_truth_as_often_as_they_say(keys: int, effect: float) -> None:
    """A short turn of `tests/campaigns/coverage_of_intervals.py`."""
    repeats = 60
    scores = simulated({"": UtilityAUC()}, partial(predictions, 60, effect, keys), repeats)[""]
    found = covered(scores)
    assert found.coverage >= binom(repeats, 0.92).ppf(1e-5) / repeats  # .92 is the least allowed
    assert 0.75 < found.width < 1.4


@pytest.mark.parametrize(("value", "low", "high"), [(1.0, 0.025 ** (1 / 20), 1.0), (0.0, 0.0, 1 - 0.025 ** (1 / 20))])
def test_a_share_of_all_or_nothing_is_as_sure_as_its_people(value: float, low: float, high: float) -> None:
    made = with_interval(
        Score(value, None, None, 20), replicates([value] * 3, [[value] * 4] * 3, scale="share"), over=""
    )
    assert (made.low, made.high) == (value, value)
    found = never_certain(made, 20)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_a_classifier_without_a_mistake_on_few_people_is_not_said_to_be_certain() -> None:
    labels = (torch.arange(40) % 2).float()[:, None]
    found = UtilityAUC()(UtilityEvidence([labels] * 3, labels, torch.arange(40), ("a",), 0))
    assert found.low == found.parts["a"].low == pytest.approx(0.025 ** (1 / 20))


@pytest.mark.parametrize("trials", [5, 8, 33])
def test_mid_p_bounds_hold_about_as_often_as_they_say_and_are_narrower_than_exact_ones(trials: int) -> None:
    hits = np.arange(trials + 1)
    bounds = np.array([mid_p(float(count), trials, 0.025) for count in hits])
    exact = np.array(clopper_pearson(hits, trials, 0.025)).T
    assert (bounds[:, 0] >= exact[:, 0]).all()
    assert (bounds[:, 1] <= exact[:, 1]).all()
    shares = np.linspace(0.001, 0.999, 999)
    chances = binom(trials, shares).pmf(hits[:, None])
    middle = (shares > 0.2) & (shares < 0.8)
    coverage, before = (
        (chances * ((ends[:, :1] <= shares) & (shares <= ends[:, 1:]))).sum(axis=0) for ends in (bounds, exact)
    )
    assert coverage.min() > 0.92
    assert coverage[middle].mean() < 0.98
    assert 0.95 < coverage[middle].mean() < before[middle].mean()


def test_mid_p_bounds_rise_with_fractional_hits() -> None:
    lows, highs = zip(*(mid_p(count / 4, 5, 0.025) for count in range(21)), strict=True)
    assert list(lows) == sorted(lows)
    assert list(highs) == sorted(highs)


def of_trainings(random: np.random.Generator, keys: int, trainings: Sequence[int], skill: float) -> Replicates:
    """A mean over 40 people and keys about 0, with what the people, the trainings and each key move."""
    people = 40
    moved = skill * random.standard_normal(max(trainings) + 1)[list(trainings)] + 0.3 * random.standard_normal(keys)
    table = 0.5 * random.standard_normal(people) + moved[:, None] + random.standard_normal((keys, people))
    times = random.multinomial(people, np.full(people, 1 / people), size=60)
    drawn = (table @ times.T / people).tolist()
    return Replicates(table.mean(axis=1).tolist(), drawn, people - 1, "0" * 16, trainings=trainings)


@pytest.mark.parametrize("trainings", [[0] * 5 + [1] * 5, [0, 0, 0, 1, 1], sorted(list(range(5)) * 3)])
def test_intervals_over_trainings_hold_the_truth_and_those_over_keys_do_not(trainings: list[int]) -> None:
    random, repeats, held = np.random.default_rng(0), 300, [0, 0]
    for _ in range(repeats):
        found = of_trainings(random, len(trainings), trainings, 0.6)
        for place, table in enumerate((found, replace(found, trainings=()))):
            held[place] += abs(np.mean(table.by_key)) <= components(table).width()
    assert held[0] >= binom(repeats, 0.92).ppf(1e-5)
    assert held[1] / repeats < 0.85


def test_ranks_do_not_tell_equal_attacks_apart_by_their_trainings() -> None:
    random, repeats, told = np.random.default_rng(2), 200, [0, 0]
    for _ in range(repeats):
        a, b = (of_trainings(random, 10, [0] * 5 + [1] * 5, 0.6) for _ in range(2))
        told[0] += one_of_many(a, b).p < 0.05
        told[1] += one_of_many(*(replace(each, trainings=()) for each in (a, b))).p < 0.05
    assert told[0] <= binom(repeats, 0.05).ppf(1 - 1e-4)
    assert told[1] > 0.25 * repeats


def test_trainings_never_narrow_an_interval_and_one_or_one_a_key_changes_nothing() -> None:
    random = np.random.default_rng(1)
    for _ in range(40):
        found = of_trainings(random, 6, [0, 0, 0, 1, 1, 1], 0.0)
        alone = components(replace(found, trainings=())).width()
        assert components(found).width() >= alone
        for same in ([0] * 6, list(range(6))):
            assert components(replace(found, trainings=same)).width() == alone


def test_the_part_of_trainings_is_that_of_a_table_by_hand() -> None:
    # Training means 1 and 5, within a deviation of root 2 about them: mean squares 16 and 2, size 2, half of it each.
    # A quarter of the second is taken off the first.
    found = components(replicates([0.0, 2.0, 4.0, 6.0], [[1.0, 1.0]] * 4, trainings=[0, 0, 1, 1])).nested
    assert found is not None
    assert (found.trainings, found.keys_alone) == (2, 2.0)
    assert found.trainings_alone == pytest.approx((16 - 2 / 4) / 2 / 2)


def test_trainings_survive_a_record_and_are_named_in_the_note() -> None:
    found = replicates([0.5, 0.75, 0.5], [[0.25, 0.5]] * 3, scale="share", trainings=(0, 0, 1))
    made = score_record(with_interval(Score(0.6, None, None, 9), found, over="people"), better="lower", unit="AUC")
    assert "over people and 3 keys of 2 trainings of the attack" in made.note
    assert made.replicates is not None
    assert made.replicates.read() == found
    assert "trainings" not in json.dumps(score_record(
        with_interval(Score(0.6, None, None, 9), replace(found, trainings=()), over="people"), better="lower", unit=""
    ).model_dump())  # fmt: skip
    alone = with_interval(Score(0.6, None, None, 9), replace(found, trainings=[0, 0, 0]), over="people")
    assert "one training of the attack: what trainings vary is left out" in alone.note


@pytest.mark.parametrize("trainings", [[0], [0, 0, 1]])
def test_trainings_of_another_number_of_keys_are_refused(trainings: list[int]) -> None:
    with pytest.raises(ValueError, match="the training of each of 2 keys"):
        replicates([1.0, 2.0], TWO, trainings=trainings)
