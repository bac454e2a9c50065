"""Reach of audits: expected bounds, and the coins that claims need."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator

import numpy as np
import scipy

from bench.statistics.confidence_intervals import RARE, upper_proportion
from bench.statistics.epsilon_bounds import (
    MOST_MU,
    Family,
    gaussian_epsilon,
    largest,
    noise_of,
    noises,
    one_run_bound,
)
from bench.statistics.sampled_gaussian import SampledGaussian, Sides

LEAST_COINS, MOST_COINS = 512, 32_768
WANTED = 0.6
MOST_APART = 64  # guesses of a run that counts by itself: the time of a bound grows with their cube
SHARES = 9  # halves, quarters and so on of the coins are guessed


def ideal_bound(
    epsilon: float, coins: int, *, delta: float, confidence: float, family: Family = "any", each: int | None = None
) -> float:
    """Bound expected of the best attacker at this epsilon, coins being independent.

    With `each`, coins of a run, the better of runs counted together and one by one.
    """
    whole = ideal_guesses(epsilon, coins, delta=delta, confidence=confidence, family=family)[0]
    if each is None or family == "any" or each >= coins:
        return whole
    runs = coins // each
    return max(
        whole,
        *(
            one_run_bound(
                math.floor(right * guesses * runs), guesses * runs, each * runs, delta=delta, confidence=confidence,
                family=family, sides=sides, runs=runs,
            )
            for right, guesses, sides in _guesses(family, epsilon, each, delta)
            if guesses <= MOST_APART
        ),
    )  # fmt: skip


def ideal_guesses(
    epsilon: float, coins: int, *, delta: float, confidence: float, family: Family = "any"
) -> tuple[float, int]:
    """Bound expected of that attacker, and her number of clearest coins.

    Of all coins, halves, quarters and so on to 1/256, the number with the largest bound; of a `SampledGaussian` also
    that of guesses of included rows alone.
    """
    return max(
        (
            one_run_bound(
                math.floor(right * guesses), guesses, coins, delta=delta, confidence=confidence, family=family,
                sides=sides,
            ),
            guesses,
        )
        for right, guesses, sides in _guesses(family, epsilon, coins, delta)
    )  # fmt: skip


def limit_of_test(
    correct: int, guesses: int, coins: int, *, delta: float, confidence: float, family: Family, steps: int = 1
) -> float | None:
    """Largest epsilon that such a test shows of any number of coins.

    A test that is right more often than the upper Clopper-Pearson limit of these guesses is another test. None if every
    guess is right, and of a `SampledGaussian`.
    """
    right = float(upper_proportion(correct, guesses, 1 - confidence)) if guesses else 1.0
    if right >= 1 or isinstance(family, SampledGaussian):
        return None
    if family == "any":
        return max(0.0, math.log(right / (1 - right))) / steps
    mu = largest(lambda mu: _right(mu, guesses / coins) < right, most=MOST_MU)
    return gaussian_epsilon(mu / steps, delta)


def _guesses(family: Family, epsilon: float, coins: int, delta: float) -> Iterator[tuple[float, int, Sides]]:
    """Expected shares of right guesses, numbers of guesses, and their sides."""
    if isinstance(family, SampledGaussian):
        yield from _sampled_guesses(family, epsilon, coins, delta)
        return
    mu = largest(lambda mu: gaussian_epsilon(mu, delta) < epsilon, most=MOST_MU) if family == "Gaussian" else 0.0
    for power in range(SHARES):
        if not (guesses := coins >> power):
            break
        right = _right(mu, 1 / 2**power) if family == "Gaussian" else float(scipy.special.expit(epsilon))
        yield right, guesses, "both"


def _right(mu: float, share: float) -> float:
    """Right share of the clearest guesses of coins.

    A statistic is N(0, 1) or N(mu, 1); half of the guesses lie in either tail of the mixture.
    """
    edge = largest(lambda x: _tail(x, mu) > share / 2, most=MOST_MU)
    here, there = (float(scipy.special.ndtr(sign * mu / 2 - max(edge, 0.0))) for sign in (1, -1))
    return here / (here + there)


def _sampled_guesses(
    family: SampledGaussian, epsilon: float, coins: int, delta: float
) -> Iterator[tuple[float, int, Sides]]:
    """Expected shares of right guesses, numbers of guesses, and their sides."""
    most = noises(family, delta)
    number = bisect.bisect_left(range(most), True, key=lambda n: family.epsilon(noise_of(family, n), delta) >= epsilon)
    included, omitted = family.tails(noise_of(family, min(number, most - 1)))
    for power in range(SHARES):
        if guesses := coins >> power:
            top, half = (np.searchsorted(-(included + omitted) / 2, -share) for share in (0.5**power, 0.5**power / 2))
            low = np.searchsorted(-(included + omitted) / 2, -(1 - 0.5**power / 2))
            both = included[half] + 1 - omitted[low]
            if power:
                yield float(included[top] / (included[top] + omitted[top])), guesses, "first"
            yield float(both / (both + omitted[half] + 1 - included[low])), guesses, "both"


def _tail(edge: float, mu: float) -> float:
    """Share of coins beyond `edge` from the two normal distributions' middle."""
    return float(scipy.special.ndtr(mu / 2 - edge) + scipy.special.ndtr(-mu / 2 - edge)) / 2


def ceiling(coins: int, *, delta: float, confidence: float, family: Family = "any") -> float:
    """The largest bound that so many coins can show.

    All are guessed rightly, or the half that fell on the first side.
    """
    rules: tuple[tuple[int, Sides], ...] = (coins, "both"), (coins // 2, "first")
    return max(
        one_run_bound(count, count, coins, delta=delta, confidence=confidence, family=family, sides=sides)
        for count, sides in rules
    )


def coins_needed(
    epsilon: float, *, delta: float, confidence: float, family: Family = "any", each: int | None = None
) -> int:
    """Fewest coins, a power of two, to judge a claim of epsilon.

    They can show more than epsilon and are expected to show `WANTED` of it. The first is said of the ceiling, the bound
    if every coin is guessed rightly, at the confidence of a verdict; the second of the best attacker on a mechanism
    of this very epsilon; `each` are the coins of a run. `MOST_COINS` if so many do not.
    """
    coins = LEAST_COINS
    while coins < MOST_COINS:
        most = ceiling(coins, delta=delta, confidence=max(confidence, 1 - RARE), family=family)
        if most > epsilon and ideal_bound(
            epsilon, coins, delta=delta, confidence=confidence, family=family, each=each
        ) >= WANTED * epsilon:  # fmt: skip
            break
        coins *= 2
    return coins
