from __future__ import annotations

import math
from typing import Literal

import pytest

from bench.statistics.epsilon_bounds import gaussian_epsilon
from bench.statistics.epsilon_reach import limit_of_test
from bench.statistics.sampled_gaussian import SampledGaussian


def limit(correct: int, coins: int, family: Literal["any", "Gaussian"] = "any", steps: int = 1) -> float:
    found = limit_of_test(correct, coins, coins, delta=1e-5, confidence=0.95, family=family, steps=steps)
    assert found is not None
    return found


def test_the_limit_of_a_test_is_what_its_guesses_show_with_any_number_of_coins() -> None:
    many = 10**6
    assert limit(73 * many // 100, many) == pytest.approx(math.log(0.73 / 0.27), abs=0.01)
    assert limit(73 * many // 100, many, steps=2) == pytest.approx(math.log(0.73 / 0.27) / 2, abs=0.01)
    assert limit(52, 100) > limit(520, 1000) > 0.18
    # The best test of 1-Gaussian privacy is right of a share 0.6915 of all coins.
    assert limit(6915 * many // 10_000, many, "Gaussian") == pytest.approx(gaussian_epsilon(1.0, 1e-5), abs=0.05)


@pytest.mark.parametrize(("correct", "family", "found"), [(9, "any", None), (5, SampledGaussian(0.1, 9), None),
                                                           (0, "any", 0.0)])  # fmt: skip
def test_a_test_without_a_wrong_guess_and_a_sampled_training_have_no_limit(
    correct: int, family: Literal["any"] | SampledGaussian, found: float | None
) -> None:
    assert limit_of_test(correct, 9, 9, delta=1e-5, confidence=0.95, family=family) == found
