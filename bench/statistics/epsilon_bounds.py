"""Bounds on the epsilon behind a test with known hits and false alarms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

Rates = NDArray[np.float64]


def clopper_pearson(hits: ArrayLike, trials: int, level: float) -> tuple[Rates, Rates]:
    """One-sided lower and upper bounds on the probability behind `hits` of `trials`; each errs at most at `level`.

    Clopper and Pearson 1934: quantiles of beta distributions; 0 where nothing was hit, 1 where all were.

    >>> [float(bound.round(4)) for bound in clopper_pearson(5, 10, 0.025)]
    [0.1871, 0.8129]
    """
    k = np.asarray(hits, dtype=np.float64)
    low = np.where(k == 0, 0.0, betaincinv(np.maximum(k, 1), trials - k + 1, level))
    high = np.where(k == trials, 1.0, betaincinv(k + 1, np.maximum(trials - k, 1), 1 - level))
    return low, high


def lower_bound(
    hits: ArrayLike, false_alarms: ArrayLike, trials: int, *, delta: float, confidence: float
) -> NDArray[np.float64]:
    """Lower bounds on epsilon, elementwise, from tests fixed beforehand; minus infinity where nothing is shown."""
    level = (1 - confidence) / 2
    found, alarm = clopper_pearson(hits, trials, level)[0], clopper_pearson(false_alarms, trials, level)[1]
    return log_ratio(found - delta, alarm)


def log_ratio(above: Rates, below: Rates) -> Rates:
    """log(above / below), elementwise; minus infinity where nothing is above 0."""
    shown = above > 0
    return np.where(shown, np.log(np.where(shown, above, 1.0) / np.where(shown, below, 1.0)), -np.inf)
