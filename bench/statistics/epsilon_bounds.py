"""Lower bounds on epsilon from the counted decisions of a test."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy

from bench.statistics.confidence_intervals import lower_proportion, upper_proportion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Rates: TypeAlias = "NDArray[np.float64]"
SPARED = 0.1
"""Share of the error probability spent on delta: more releases revealing their input than expected."""
MOST_EPSILON = 60.0
EXACT = 1e-6


def lower_bound(
    correct: ArrayLike, guesses: ArrayLike, trials: int, *, delta: float, confidence: float
) -> NDArray[np.float64]:
    """Lower bounds on epsilon from guesses at fair coins, elementwise.

    Minus infinity if nothing is shown.

    Steinke, Nasr and Jagielski 2023, theorem 5.1: each trial releases one of two inputs by a coin, the test guesses
    which or abstains, and under epsilon-differential privacy the number of correct guesses is at most a binomial one
    of the probability e^epsilon / (1 + e^epsilon), for any number of guesses. The coins may share a release that is
    epsilon-differentially private in each of them.

    With delta the trials must be independent releases. Each reveals its coin with probability delta and is
    epsilon-differentially private otherwise (Kairouz, Oh and Viswanath 2015, theorem 3.4). More than k of them do so
    with at most a tenth of the error probability, so k correct guesses are not counted.

    Args:
        correct, guesses: Counts; a test that abstains makes no guess.
        trials: Coins.
        delta: Of the claim.
        confidence: Of the bound, in (0, 1).

    >>> float(lower_bound(4000, 4000, 4000, delta=0.0, confidence=0.95).round(2))
    7.2
    """
    level = 1 - confidence
    revealed = 0
    if delta > 0:
        revealed = int(scipy.stats.binom.isf(SPARED * level, trials, min(delta, 1.0)))
        level *= 1 - SPARED
    right, attempts = (np.maximum(np.asarray(count, dtype=np.float64) - revealed, 0) for count in (correct, guesses))
    return _log_odds(lower_proportion(right, attempts, level))


def one_run_bound(correct: int, guesses: int, coins: int, *, delta: float, confidence: float, steps: int = 1) -> float:
    """Lower bound on epsilon from guesses at coins in one release.

    Minus infinity if nothing is shown.

    Steinke, Nasr and Jagielski 2023, theorem 5.2: under (epsilon, delta)-differential privacy in each of m coins, v or
    more of r guesses are correct with a probability of at most f(v) + 2 m delta max_i (f(v - i) - f(v)) / i, where f is
    the upper tail of a binomial number of r and e^epsilon / (1 + e^epsilon). The number of
    guesses is fixed beforehand.

    Args:
        correct, guesses, coins: v, r and m.
        delta, confidence: As in `lower_bound`.
        steps: Neighbour steps between the two inputs of a coin: 2 if it replaces a row and neighbours differ by one
            added or removed row. By group privacy such inputs are (2 epsilon, (1 + e^epsilon) delta)-indistinguishable.
    """
    if steps not in (1, 2):
        raise ValueError(f"steps must be 1 or 2, got {steps}")

    def refuted(epsilon: float) -> bool:
        wide = delta if steps == 1 else delta * (1 + math.exp(epsilon))
        return _one_run_p(correct, guesses, coins, epsilon * steps, wide) <= 1 - confidence

    return _largest(refuted) if guesses else -math.inf


def _one_run_p(correct: int, guesses: int, coins: int, epsilon: float, delta: float) -> float:
    """The probability bound of theorem 5.2."""
    chance = float(scipy.special.expit(epsilon))
    p = float(scipy.stats.binom.sf(correct - 1, guesses, chance))
    if delta > 0 and correct > 0:
        below = np.cumsum(scipy.stats.binom.pmf(np.arange(correct - 1, -1, -1), guesses, chance))
        p += 2 * coins * delta * float((below / np.arange(1, correct + 1)).max())
    return min(p, 1.0)


def gaussian_bound(
    hits: int, firsts: int, false_alarms: int, seconds: int, *, delta: float, confidence: float
) -> float:
    """Lower bound on epsilon at delta for a mu-Gaussian private mechanism.

    Nasr et al. 2023, Tight auditing of differentially private machine learning (section 4): mu is at least the distance
    of the rates as normal quantiles, each at its Clopper-Pearson bound; epsilon follows from mu and delta (Dong, Roth
    and Su 2022, corollary 1). It holds only for mechanisms known to be Gaussian private.

    Args:
        hits, firsts: Releases of the first input called the first's; their number.
        false_alarms, seconds: Releases of the second input called the first's; their number.
        delta, confidence: Of the result; 0 < delta < 1, for no mu above 0 gives a finite epsilon at 0.
    """
    level = (1 - confidence) / 2
    hit_rate = float(lower_proportion(hits, firsts, level))
    alarm_rate = float(upper_proportion(false_alarms, seconds, level))
    if not 0 < alarm_rate < hit_rate < 1:
        return -math.inf
    mu = float(scipy.special.ndtri(hit_rate) - scipy.special.ndtri(alarm_rate))

    def exceeds(epsilon: float) -> bool:
        tails = scipy.special.ndtr(mu / 2 - epsilon / mu), scipy.special.ndtr(-mu / 2 - epsilon / mu)
        return float(tails[0] - math.exp(epsilon) * tails[1]) > delta

    return _largest(exceeds)


def _largest(refuted: Callable[[float], bool]) -> float:
    """The largest refuted epsilon by bisection; minus infinity if none."""
    if not refuted(0.0):
        return -math.inf
    low, high = 0.0, MOST_EPSILON
    while high - low > EXACT:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _log_odds(share: Rates) -> Rates:
    positive = share > 0
    odds = np.where(positive, share, 0.5) / np.where(share < 1, 1 - share, 1.0)
    return np.where(positive, np.log(odds), -np.inf)
