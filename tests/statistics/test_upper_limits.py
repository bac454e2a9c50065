from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, t

from bench.statistics.upper_limits import upper_limit
from bench.types import Replicates


def share(by_key: list[float], resampled: list[list[float]]) -> Replicates:
    return Replicates(by_key, resampled, 9, scale="share")


def test_an_area_of_one_key_has_the_t_limit_of_its_log_odds() -> None:
    table = share([0.6], [[0.55, 0.6, 0.65]])
    odds = math.log(0.6 / 0.4) + t.ppf(0.95, 9) * 0.05 / (0.6 * 0.4)
    assert upper_limit(table, people=100) == pytest.approx(1 / (1 + math.exp(-odds)))


def test_a_share_has_clopper_and_pearsons_limit_for_the_effective_number_of_answers() -> None:
    table = share([0.2], [[0.15, 0.2, 0.25]])
    answers = 0.2 * 0.8 * (1.6448536 / (t.ppf(0.95, 9) * 0.05)) ** 2
    expected = beta.ppf(0.95, 0.2 * answers + 1, answers - 0.2 * answers)
    assert upper_limit(table, people=100, answers=600) == pytest.approx(expected, rel=1e-6)
    fewer = upper_limit(table, people=100, answers=30)
    assert fewer == pytest.approx(beta.ppf(0.95, 7, 24))


@pytest.mark.parametrize(("figure", "answers"), [(0.0, 500), (1.0, 500), (1.0, None), (0.0, None)])
def test_a_figure_that_nothing_varies_is_as_sure_as_its_people(figure: float, answers: int | None) -> None:
    found = upper_limit(share([figure] * 5, [[figure] * 4] * 5), people=50, answers=answers)
    assert found == pytest.approx(1.0 if figure else 1 - 0.05 ** (1 / 50))


@pytest.mark.parametrize("keys", [5, 33])
@pytest.mark.parametrize("rate", [1 / 120, 0.1])
def test_limits_of_answers_that_people_and_keys_vary_hold_as_often_as_they_say(keys: int, rate: float) -> None:
    random, people, held, repeats = np.random.default_rng(keys), 120, 0, 200
    for _ in range(repeats):
        own = random.beta(0.5, 0.5 / rate - 0.5, people)
        answers = (random.random((keys, people)) < own).astype(float)
        times = random.multinomial(people, np.full(people, 1 / people), size=100)
        table = Replicates(answers.mean(axis=1).tolist(), (answers @ times.T / people).tolist(), 99, scale="share")
        held += upper_limit(table, people=people, answers=people * keys) >= rate
    assert held / repeats >= 0.9  # of .95, four standard deviations of 200 repeats are .06


def test_a_figure_that_is_no_share_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a share in \[0, 1\], got 4"):
        upper_limit(Replicates([4.0], [[4.0, 5.0]], 1), people=10)
