"""Bounds of a median from order statistics, which hold for any distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import scipy

from bench.statistics.confidence_intervals import scope_of
from bench.types import Score

SURE = 0.95


@dataclass(frozen=True)
class MedianBounds:
    """Two order statistics about a median.

    Args:
        low, high: The r-th smallest and the r-th largest value.
        confidence: With which the median of further values lies between them: 1 - 2 P(B < r), B binomial (n, 1/2).
    """

    low: float
    high: float
    confidence: float

    @property
    def sure(self) -> bool:
        """True if the confidence is 95 % or more."""
        return self.confidence >= SURE


def median_bounds(values: Sequence[float]) -> MedianBounds:
    """Narrowest bounds of 95 % or more; otherwise least and largest value.

    Five values or fewer have no such bounds. David and Nagaraja 2003, "Order statistics", section 7.1. Ties make the
    bounds hold more often.

    >>> median_bounds([3, 1, 4, 1, 5])
    MedianBounds(low=1, high=5, confidence=0.9375)
    >>> median_bounds(range(1, 11))
    MedianBounds(low=2, high=9, confidence=0.978515625)
    """
    ordered, n = sorted(values), len(values)
    r = max(1, int(scipy.stats.binom.ppf((1 - SURE) / 2, n, 0.5)))
    while r > 1 and _between(r, n) < SURE:
        r -= 1
    return MedianBounds(ordered[r - 1], ordered[n - r], _between(r, n))


def _between(r: int, n: int) -> float:
    return float(1 - 2 * scipy.stats.binom.cdf(r - 1, n, 0.5))


def median_limit(values: Sequence[float]) -> float | None:
    """One-sided 95 % upper limit of the median; None below five values.

    >>> median_limit([3, 1, 4, 1, 5]), median_limit([1, 1, 1, 1]), median_limit(range(1, 11))
    (5, None, 9)
    """
    ordered, n = sorted(values), len(values)
    return next((ordered[r] for r in range(n) if scipy.stats.binom.cdf(r, n, 0.5) >= SURE), None)


def median_over_keys(score: Score, by_key: Sequence[float]) -> Score:
    """The score as the median of the keys' figures, with its bounds.

    They hold for the people of the release; other people may be found more or less easily. The note's first part, that
    of the former interval, is replaced.
    """
    bounds, keys = median_bounds(by_key), len(by_key)
    scope = scope_of(() if score.replicates is None else score.replicates.trainings)
    note = f"{bounds.confidence:.1%} interval of the median over {keys} keys, {scope} (order statistics)"
    if not bounds.sure:
        note = (
            f"no 95 % interval: the median of {keys} keys has none (6 keys are enough); {bounds.low:.4g} to "
            f"{bounds.high:.4g} is a {note}"
        )
    low, high = (bounds.low, bounds.high) if bounds.sure else (None, None)
    rest = score.note.partition("; ")[2]
    return replace(
        score, value=float(median(by_key)), low=low, high=high, prediction_low=None, prediction_high=None,
        note=f"{note}; {rest}",
    )  # fmt: skip
