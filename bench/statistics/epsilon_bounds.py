"""Lower bounds on epsilon from the counted decisions of a test."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from bench.statistics.confidence_intervals import RARE, lower_proportion, upper_proportion

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Rates: TypeAlias = "NDArray[np.float64]"
SPARED = 0.1
"""Share of the error probability spent on delta: more releases revealing their input than expected."""
MOST_EPSILON = 60.0
MOST_MU = 16.0
MOST_GAUSSIAN = 400.0  # above the epsilon of that mu at any delta from 1e-100
EXACT = 1e-6
COSTLY = 0.05
"""Coins x delta above which theorem 5.2 pays much for delta."""
LEAST_COINS, MOST_COINS = 512, 8192
WANTED = 0.55
Family: TypeAlias = Literal["any", "Gaussian"]
"""Trade-off functions of a mechanism: any, or those of Gaussian privacy alone."""


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
    correct: int, guesses: int, coins: int, *, delta: float, confidence: float, steps: int = 1, family: Family = "any"
) -> float:
    """Lower bound on epsilon from guesses at coins in one release.

    Minus infinity if nothing is shown.

    Family "Gaussian": the largest mu that the guesses refute for a mu-Gaussian private mechanism, as epsilon at delta
    (Dong, Roth and Su 2022, corollary 1). The guesses refute a trade-off function by the recursion of Mahloujifar,
    Melis and Chaudhuri 2024, Auditing f-differential privacy in one run (algorithm 3, two inputs a coin).

    Family "any": Steinke, Nasr and Jagielski 2023, theorem 5.2: under (epsilon, delta)-differential privacy in each of
    m coins, v or more of r guesses are correct with a probability of at most f(v) + 2 m delta max_i (f(v - i) - f(v)) /
    i, where f is the upper tail of a binomial number of r and e^epsilon / (1 + e^epsilon). If m delta is above
    `COSTLY` and at most half of the coins are guessed, that recursion with the trade-off function of (epsilon, delta)
    takes its place, because it is tighter there.

    The number of guesses is fixed beforehand in both.

    Args:
        correct, guesses, coins: v, r and m.
        delta, confidence: As in `lower_bound`; delta is above 0 for family "Gaussian".
        steps: Neighbour steps between the two inputs of a coin: 2 if it replaces a row and neighbours differ by one
            added or removed row. By group privacy such inputs are (2 epsilon, (1 + e^epsilon) delta)-indistinguishable,
            or 2 mu-Gaussian private.
        family: Trade-off functions that the mechanism may have.

    >>> round(one_run_bound(49, 64, 512, delta=1e-5, confidence=0.95, family="Gaussian"), 3)
    0.999
    """
    if steps not in (1, 2):
        raise ValueError(f"steps must be 1 or 2, got {steps}")
    if not guesses:
        return -math.inf
    if family == "Gaussian":
        if not 0 < delta < 1:
            raise ValueError(f"delta of a Gaussian private mechanism must be between 0 and 1, got {delta}")
        mu = _largest(
            lambda mu: _refuted(
                lambda rate: float(scipy.special.ndtr(scipy.special.ndtri(rate) - mu)),
                correct,
                guesses,
                coins,
                confidence,
            ),
            most=MOST_MU,
        )
        return gaussian_epsilon(mu / steps, delta) if mu > 0 else -math.inf

    def refuted(epsilon: float) -> bool:
        wide = delta if steps == 1 else delta * (1 + math.exp(epsilon))
        if coins * delta > COSTLY and 2 * guesses <= coins:
            return _refuted(_reverse(epsilon * steps, wide), correct, guesses, coins, confidence)
        return _one_run_p(correct, guesses, coins, epsilon * steps, wide) <= 1 - confidence

    return _largest(refuted)


def _refuted(reverse: Callable[[float], float], correct: int, guesses: int, coins: int, confidence: float) -> bool:
    """True if so many right guesses have chance below 1 - confidence.

    `reverse` maps a detection rate to the least false-alarm rate that the trade-off function allows for it.
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

    return max(_largest(exceeds, most=MOST_GAUSSIAN), 0.0)


def ideal_bound(epsilon: float, coins: int, *, delta: float, confidence: float, family: Family = "any") -> float:
    """Bound expected of the best attacker at this epsilon, coins being independent."""
    return ideal_guesses(epsilon, coins, delta=delta, confidence=confidence, family=family)[0]


def ideal_guesses(
    epsilon: float, coins: int, *, delta: float, confidence: float, family: Family = "any"
) -> tuple[float, int]:
    """Bound expected of that attacker, and her number of clearest coins.

    Of all coins, halves, quarters and so on to 1/256, the number with the largest bound.
    """
    tried = []
    mu = _largest(lambda mu: gaussian_epsilon(mu, delta) < epsilon, most=MOST_MU) if family == "Gaussian" else 0.0
    for power in range(9):
        guesses = coins >> power
        if not guesses:
            break
        # A statistic is N(0, 1) or N(mu, 1); half of the guesses lie in either tail of the mixture.
        if family == "Gaussian":
            edge = _largest(lambda x, share=1 / 2**power: _tail(x, mu) > share / 2, most=MOST_MU)  # type: ignore[misc]
            edge = max(edge, 0.0)
            right = float(scipy.special.ndtr(mu / 2 - edge)) / (
                float(scipy.special.ndtr(mu / 2 - edge)) + float(scipy.special.ndtr(-mu / 2 - edge))
            )
        else:
            right = float(scipy.special.expit(epsilon))
        correct = math.floor(right * guesses)
        bound = one_run_bound(correct, guesses, coins, delta=delta, confidence=confidence, family=family)
        tried.append((bound, guesses))
    return max(tried)


def _tail(edge: float, mu: float) -> float:
    """Share of coins beyond `edge` from the two normal distributions' middle."""
    return float(scipy.special.ndtr(mu / 2 - edge) + scipy.special.ndtr(-mu / 2 - edge)) / 2


def coins_needed(epsilon: float, *, delta: float, confidence: float, family: Family = "any") -> int:
    """Fewest coins, a power of two, to judge a claim of epsilon.

    They can show more than epsilon and are expected to show `WANTED` of it. The first is said of the ceiling, the bound
    if every coin is guessed rightly, at the confidence of a verdict; the second of the best attacker on a mechanism
    of this very epsilon. `MOST_COINS` if so many do not.
    """
    coins = LEAST_COINS
    while coins < MOST_COINS:
        ceiling = one_run_bound(coins, coins, coins, delta=delta, confidence=max(confidence, 1 - RARE), family=family)
        if ceiling > epsilon and ideal_bound(
            epsilon, coins, delta=delta, confidence=confidence, family=family
        ) >= WANTED * epsilon:  # fmt: skip
            break
        coins *= 2
    return coins


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


def _largest(refuted: Callable[[float], bool], *, most: float = MOST_EPSILON) -> float:
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
