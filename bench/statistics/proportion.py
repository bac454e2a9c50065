"""Bounds on a probability, from how often something came about."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Rates = NDArray[np.float64]


def clopper_pearson(hits: ArrayLike, trials: ArrayLike, level: float) -> tuple[Rates, Rates]:
    """One-sided lower and upper bounds on the probability behind `hits` of `trials`; each errs at most at `level`.

    Clopper and Pearson 1934: quantiles of beta distributions; 0 where nothing was hit, 1 where all were. Hits need not
    be whole: with ties, or as a mean over keys, they are expected ones.

    >>> [float(bound.round(4)) for bound in clopper_pearson(5, 10, 0.025)]
    [0.1871, 0.8129]
    """
    return lower_proportion(hits, trials, level), upper_proportion(hits, trials, level)


def lower_proportion(hits: ArrayLike, trials: ArrayLike, level: float) -> Rates:
    """The lower bound of `clopper_pearson` alone, for half the time."""
    k, n = _counts(hits, trials)
    return np.where(k == 0, 0.0, scipy.special.betaincinv(np.where(k == 0, 1.0, k), n - k + 1, level))


def upper_proportion(hits: ArrayLike, trials: ArrayLike, level: float) -> Rates:
    """The upper bound of `clopper_pearson` alone, for half the time."""
    k, n = _counts(hits, trials)
    return np.where(k == n, 1.0, scipy.special.betaincinv(k + 1, np.where(k == n, 1.0, n - k), 1 - level))


def _counts(hits: ArrayLike, trials: ArrayLike) -> tuple[Rates, Rates]:
    k, n = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    return k, n
