"""Lower bounds on epsilon from the counted decisions of a test."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from bench.statistics.confidence_intervals import lower_proportion, upper_proportion
from bench.statistics.sampled_gaussian import SampledGaussian, Sides

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from bench.types import PrivacyClaim

Rates: TypeAlias = "NDArray[np.float64]"
SPARED = 0.1
"""Share of the error probability spent on delta: more releases revealing their input than expected."""
MOST_EPSILON = 60.0
MOST_MU = 16.0
MOST_GAUSSIAN = 400.0  # above the epsilon of that mu at any delta from 1e-100
EXACT = 1e-6
COSTLY = 0.05
"""Coins x delta above which theorem 5.2 pays much for delta."""
HALVINGS = 14
MOST_GUESSES = 512  # of each of several runs: their time grows with the square
FINER = 1.01  # ratio of neighbouring noises of `SampledGaussian`
LEAST_SIGNAL, NOISES = 1e-3, 1100  # sampling rate x root of the steps / noise of the first one; their number
Family: TypeAlias = 'Literal["any", "Gaussian"] | SampledGaussian'
"""Trade-off functions of a mechanism: any, those of Gaussian privacy, or of a private training with any noise."""


def family_of(claim: PrivacyClaim) -> Family:
    """Trade-off functions of mechanisms as claimed."""
    if claim.sampling_rate is None or claim.steps is None:
        return claim.family
    return SampledGaussian(claim.sampling_rate, claim.steps, claim.neighbours == "replaced")


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


def one_run_bound(
    correct: int, guesses: int, coins: int, *, delta: float, confidence: float, steps: int = 1, family: Family = "any",
    sides: Sides = "both", runs: int = 1,
) -> float:  # fmt: skip
    """Lower bound on epsilon from guesses at coins of few releases.

    Minus infinity if nothing is shown.

    Family "Gaussian": the largest mu that the guesses refute for a mu-Gaussian private mechanism, as epsilon at delta
    (Dong, Roth and Su 2022, corollary 1). The guesses refute a trade-off function by the recursion of Mahloujifar,
    Melis and Chaudhuri 2024, Auditing f-differential privacy in one run (algorithm 3, two inputs a coin).

    Family `SampledGaussian`: the same by the trade-off functions of a private training; epsilon at delta of the least
    noise that is not refuted. Guesses that no noise explains (`unexplained`) refute the stated rate and steps: their
    bound is that of family "Gaussian", if it is larger.

    With several runs, that recursion bounds the chance of every number of right guesses in one run. The sum over runs
    is then no larger than a sum of independent numbers of that distribution.

    Family "any": Steinke, Nasr and Jagielski 2023, theorem 5.2: under (epsilon, delta)-differential privacy in each of
    m coins, v or more of r guesses are correct with a probability of at most f(v) + 2 m delta max_i (f(v - i) - f(v)) /
    i, where f is the upper tail of a binomial number of r and e^epsilon / (1 + e^epsilon). If m delta is above
    `COSTLY` and at most half of the coins are guessed, that recursion with the trade-off function of (epsilon, delta)
    takes its place, because it is tighter there.

    The number of guesses is fixed beforehand in all of them, and of every run.

    Args:
        correct, guesses, coins: v, r and m.
        delta, confidence: As in `lower_bound`; delta is above 0 for all families but "any".
        steps: Neighbour steps between the two inputs of a coin: 2 if it replaces a row and neighbours differ by one
            added or removed row. By group privacy such inputs are (2 epsilon, (1 + e^epsilon) delta)-indistinguishable,
            or 2 mu-Gaussian private. 1 for a `SampledGaussian`.
        family: Trade-off functions that the mechanism may have.
        sides: "first" or "second" if only coins of that side are guessed: half of the coins fall on it, so that as many
            right guesses are a larger share of them. Families other than "any" count it.
        runs: Independent runs, each with the same number of coins and of guesses, `MOST_GUESSES` at most; 1 for family
            "any".

    >>> round(one_run_bound(49, 64, 512, delta=1e-5, confidence=0.95, family="Gaussian"), 3)
    0.999
    """
    if steps not in (1, 2):
        raise ValueError(f"steps must be 1 or 2, got {steps}")
    if runs < 1 or guesses % runs or coins % runs:
        raise ValueError(f"coins and guesses must be multiples of the runs, got {coins}, {guesses} and {runs}")
    if runs > 1 and guesses > MOST_GUESSES * runs:
        raise ValueError(f"guesses of each of several runs are at most {MOST_GUESSES}, got {guesses // runs}")
    if not guesses:
        return -math.inf
    if family != "any":
        if not 0 < delta < 1:
            raise ValueError(f"delta of a Gaussian private mechanism must be between 0 and 1, got {delta}")
        counts = correct, guesses, coins
        return _family_bound(family, counts, delta=delta, confidence=confidence, steps=steps, sides=sides, runs=runs)
    if runs != 1:
        raise ValueError(f"coins of mechanisms of any family count in one run, got {runs} runs")

    def refuted(epsilon: float) -> bool:
        wide = delta if steps == 1 else delta * (1 + math.exp(epsilon))
        if coins * delta > COSTLY and 2 * guesses <= coins:
            return _refuted(_reverse(epsilon * steps, wide), correct, guesses, coins, confidence)
        return _one_run_p(correct, guesses, coins, epsilon * steps, wide) <= 1 - confidence

    return largest(refuted)


def _family_bound(
    family: Literal["Gaussian"] | SampledGaussian, counts: tuple[int, int, int], *, delta: float, confidence: float,
    steps: int, sides: Sides, runs: int,
) -> float:  # fmt: skip
    """Epsilon of the last member of a family that counts refute."""

    def refuted(size: float) -> bool:
        return _member_refuted(family, size, counts, confidence, sides, runs)

    if family == "Gaussian":
        mu = largest(refuted, most=MOST_MU)
        return gaussian_epsilon(mu / steps, delta) if mu > 0 else -math.inf
    if steps != 1:
        raise ValueError(f"coins of a private training are one step apart, got {steps} steps")
    first = bisect.bisect_left(
        range(noises(family, delta)), True, key=lambda number: not refuted(noise_of(family, number))
    )
    bound = min(family.epsilon(noise_of(family, first - 1), delta), MOST_EPSILON) if first else -math.inf
    if not unexplained(family, *counts, confidence=confidence, sides=sides, runs=runs):
        return bound
    general = _family_bound(
        "Gaussian", counts, delta=delta, confidence=confidence, steps=steps, sides=sides, runs=runs
    )  # fmt: skip
    return max(bound, general)


def unexplained(
    family: SampledGaussian, correct: int, guesses: int, coins: int, *, confidence: float, sides: Sides = "both",
    runs: int = 1,
) -> bool:  # fmt: skip
    """True if guesses refute a training's rate and steps at any noise.

    Even without noise a row that no step samples leaves no trace. Arguments as in `one_run_bound`.

    >>> unexplained(SampledGaussian(1e-6, 9), 512, 512, 512, confidence=0.95)
    True
    """
    return bool(guesses) and _member_refuted(family, 0.0, (correct, guesses, coins), confidence, sides, runs)


def _member_refuted(
    family: Literal["Gaussian"] | SampledGaussian, size: float, counts: tuple[int, int, int], confidence: float,
    sides: Sides, runs: int,
) -> bool:  # fmt: skip
    """True if counts refute a family's member of this size or noise."""
    correct, guesses, coins = counts
    if runs == 1:
        return _refuted(_least_wrong(family, size, sides), correct, guesses, coins, confidence)
    chances = _chances(family, size, sides, guesses // runs, coins // runs)
    return _sum_tail(np.array(chances), runs, correct) <= 1 - confidence


def _least_wrong(family: Literal["Gaussian"] | SampledGaussian, size: float, sides: Sides) -> Callable[[float], float]:
    """Least share of wrong guesses by that of right ones."""
    if family != "Gaussian":
        return family.least_wrong(size, sides)
    share = 1.0 if sides == "both" else 0.5
    return lambda right: share * float(scipy.special.ndtr(scipy.special.ndtri(min(1.0, right / share)) - size))


def _refuted(reverse: Callable[[float], float], correct: int, guesses: int, coins: int, confidence: float) -> bool:
    """True if so many right guesses have chance below 1 - confidence.

    `reverse` maps the share of coins guessed rightly to the least share guessed wrongly that the trade-off function
    allows for it.
    """
    level = 1 - confidence
    # Shares of coins guessed wrongly and rightly, if at least so many guesses are right with probability `level`.
    wrong, right = level * (guesses - correct) / coins, level * correct / coins
    for number in range(correct - 1, -1, -1):
        least = max(wrong, reverse(min(right, 1.0)))
        right += number / (guesses - number) * (least - wrong)
        wrong = least
        if right + wrong > guesses / coins:
            return True
    return False


@lru_cache(maxsize=4096)
def _chances(
    family: Literal["Gaussian"] | SampledGaussian, size: float, sides: Sides, guesses: int, coins: int
) -> tuple[float, ...]:
    """Chances of right guesses in one run, at their largest in distribution."""
    reverse, tails = _least_wrong(family, size, sides), [1.0]
    for correct in range(1, guesses + 1):
        low, high = 0.0, tails[-1]
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if _refuted(reverse, correct, guesses, coins, 1 - middle) else (middle, high)
        tails.append(high)
    return tuple(here - beyond for here, beyond in zip(tails, [*tails[1:], 0.0], strict=True))


def _sum_tail(chances: Rates, count: int, least: int) -> float:
    """Chance that the sum of `count` independent numbers is at least `least`."""
    most = (len(chances) - 1) * count
    size = scipy.fft.next_fast_len(most + 1)
    whole = scipy.fft.irfft(scipy.fft.rfft(chances, size) ** count, size)
    return float(whole[least : most + 1].sum())


def noise_of(family: SampledGaussian, number: int) -> float:
    """Noise multiplier of a number below `noises`, from much noise to little."""
    return family.rate * math.sqrt(family.steps) / (LEAST_SIGNAL * FINER**number)


@cache
def noises(family: SampledGaussian, delta: float) -> int:
    """Number of noise multipliers tried: those of an epsilon up to `MOST_EPSILON`."""
    return bisect.bisect_left(
        range(NOISES), True, key=lambda number: family.epsilon(noise_of(family, number), delta) > MOST_EPSILON
    )


def _reverse(epsilon: float, delta: float) -> Callable[[float], float]:
    """Least false-alarm rates of (epsilon, delta)-differential privacy."""
    factor = math.exp(epsilon)
    return lambda rate: max(0.0, (rate - delta) / factor, 1 - delta - (1 - rate) * factor)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Epsilon at delta of mu-Gaussian privacy (Dong, Roth and Su 2022)."""
    if mu <= 0:
        return 0.0

    def exceeds(epsilon: float) -> bool:
        tails = (
            scipy.special.ndtr(mu / 2 - epsilon / mu),
            math.exp(epsilon + float(scipy.special.log_ndtr(-mu / 2 - epsilon / mu))),
        )
        return float(tails[0]) - tails[1] > delta

    return max(largest(exceeds, most=MOST_GAUSSIAN), 0.0)


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
    return gaussian_epsilon(float(scipy.special.ndtri(hit_rate) - scipy.special.ndtri(alarm_rate)), delta)


def largest(refuted: Callable[[float], bool], *, most: float = MOST_EPSILON) -> float:
    """Largest refuted number up to `most` by bisection; minus infinity if none."""
    if not refuted(0.0):
        return -math.inf
    low, high = 0.0, most
    while high - low > EXACT:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _log_odds(share: Rates) -> Rates:
    positive = share > 0
    odds = np.where(positive, share, 0.5) / np.where(share < 1, 1 - share, 1.0)
    return np.where(positive, np.log(odds), -np.inf)
