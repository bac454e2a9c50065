"""What counts as chance.

Bounds on a probability, from how often something came about.

How sure a figure is: the variance that people and keys give its mean over keys, and intervals made from it.

Of a figure theta[k, people], the mean over K keys is printed. With theta = mu + person + key + interaction, its
variance is var(person) + (var(key) + var(interaction)) / K. Resampling people under fixed keys gives A, the variance
over resamples of the mean over keys, which estimates var(person) + var(interaction) / K; keys on the same people give
B, the variance over keys, which estimates var(key) + var(interaction); what resamples move in one key and not in all,
C, estimates var(interaction), counted in both. The mean's variance is A + max(0, B - C) / K.

Each part is multiplied by the square of its own t quantile before the root is taken (Cochran's way of putting variances
of unequal certainty together; its kin is MOVER, Zou and Donner 2008): Satterthwaite's degrees of freedom, estimated
from three keys, let intervals fall to 91 % coverage where this holds 94 % (`tests/benchmarks/interval_coverage.py`).
With one key, A is all there is: what keys and trainings add is left out, and the note says so.

Two figures compared on the same people and keys, and many of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy
from numpy.typing import ArrayLike, NDArray

from bench.contract.replicates import Scale
from bench.types import Replicates, Score

RARE = 0.001
"""What chance does in one of a thousand measurements is no finding."""
UNLIKELY = 0.05
"""What chance does less often than one in twenty times is not called chance."""


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


LEVEL = 0.975
"""Of the t quantile: a 95 % interval."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Components:
    """What varies a mean over K keys, in the units of the figure's scale (`Replicates.scale`).

    Args:
        keys: K.
        people: Variance of the mean over draws of people, keys being what they are (A).
        between: Variance of one key's figure over keys, people being what they are (B); 0 with one key.
        shared: The part of `between` that `people` holds as well (C).
        degrees: Of freedom of `people`.
    """

    keys: int
    people: float
    between: float
    shared: float
    degrees: float

    def width(self, level: float = LEVEL) -> float:
        """Half of the interval that ends at that quantile; of the 95 % interval, unless told otherwise."""
        square = _student(level, self.degrees) ** 2 * self.people
        if self.keys > 1:
            more = max(0.0, self.between - self.shared) / self.keys
            square += _student(level, self.keys - 1) ** 2 * more
        return math.sqrt(square)

    def wide(self, level: float) -> float:
        """The same with all that keys vary under the quantile of their few degrees: what many tests at once need.

        Where keys vary no more than resamples do, `width` takes nothing for keys. Of three keys that happens by chance
        too often for levels far beyond 95 %.
        """
        if self.keys == 1:
            return self.width(level)
        alone = max(0.0, self.people - self.shared / self.keys)
        square = _student(level, self.degrees) ** 2 * alone
        return math.sqrt(square + _student(level, self.keys - 1) ** 2 * self.between / self.keys)

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return math.sqrt(self.people + max(0.0, self.between - self.shared) / self.keys)

    @property
    def prediction(self) -> float | None:
        """Half of the 95 % range of the figure under one further key, of the same people; None with one key."""
        if self.keys == 1:
            return None
        return _student(LEVEL, self.keys - 1) * math.sqrt(self.between * (1 + 1 / self.keys))


def _student(level: float, degrees: float) -> float:
    """Student's quantile: what `scipy.stats.t.ppf` gives, without the fifty times longer way to it."""
    return float(scipy.special.stdtrit(degrees, level))


def components(found: Replicates) -> Components:
    """The components of a figure."""
    by_key, resampled = np.asarray(found.by_key, dtype=np.float64), np.asarray(found.resampled, dtype=np.float64)
    keys, middle = len(by_key), float(by_key.mean())
    means = resampled.mean(axis=0)
    if found.scale == "log":  # ratios: half of the people take fewer guesses than all, by a factor
        people = float(np.log(means).var(ddof=1))
        by_key, resampled = by_key / middle, resampled / means
        means = np.ones_like(means)
    else:
        slope = 1 / (middle * (1 - middle)) if found.scale == "share" and 0 < middle < 1 else 1.0
        by_key, resampled, means = slope * by_key, slope * resampled, slope * means
        people = float(means.var(ddof=1))
    if keys == 1:
        return Components(1, people, 0.0, 0.0, found.degrees)
    shared = float((resampled - means).var(axis=1, ddof=1).sum()) / (keys - 1)
    return Components(keys, people, float(by_key.var(ddof=1)), shared, found.degrees)


def around(value: float, width: float, scale: Scale) -> tuple[float, float]:
    """From `width` below to `width` above a value on a scale, as figures.

    >>> around(0.5, 0.0, "share"), around(10.0, math.log(2), "log"), around(1.0, 0.0, "share")
    ((0.5, 0.5), (5.0, 20.0), (1.0, 1.0))
    """
    if scale == "log":
        return value * math.exp(-width), value * math.exp(min(width, 100.0))
    if scale == "share":
        if not 0 < value < 1:
            return value, value
        odds = math.log(value / (1 - value))
        return _share(odds - width), _share(odds + width)
    return value - width, value + width


def with_interval(score: Score, found: Replicates, *, over: str) -> Score:
    """The score with the interval and the prediction range of its replicates, which it keeps.

    Args:
        score: Its value is the mean over keys; its note comes after that of the interval.
        found: The replicates.
        over: Who was resampled, in words: "test people".
    """
    made = components(found)
    low, high = around(score.value, made.width(), found.scale)
    said = (
        f"95 % interval over {over} and {made.keys} keys"
        if made.keys > 1
        else f"95 % interval over {over} alone: one key, so that what keys and trainings vary is left out"
    )
    ahead = (None, None) if made.prediction is None else around(score.value, made.prediction, found.scale)
    return replace(
        score, low=low, high=high, prediction_low=ahead[0], prediction_high=ahead[1], replicates=found,
        note=f"{said}; {score.note}" if score.note else said,
    )  # fmt: skip


def at_least_binomial(score: Score, trials: int, *, people: int | None = None) -> Score:
    """A share's score with an interval no narrower than that of so many independent trials (Clopper and Pearson 1934).

    A share of which nothing was found, or all, varies over no resample, and is not known exactly for that: then each of
    `people`, where they are fewer, is one trial.
    """
    if people is not None and not 0 < score.value < 1:
        trials = min(trials, people)
    assert score.low is not None
    assert score.high is not None
    low, high = map(float, clopper_pearson(score.value * trials, trials, 1 - LEVEL))
    return replace(score, low=min(score.low, low), high=max(score.high, high))


def never_certain(score: Score, people: int) -> Score:
    """The score; a share of exactly 0 or 1, which varies over no resample, with the interval of that many people."""
    return score if 0 < score.value < 1 else at_least_binomial(score, people)


def difference(a: Replicates, b: Replicates) -> Replicates:
    """Replicates of the difference a - b of two figures on the same people, key by key; guesses by their logarithm.

    Raises:
        ValueError: They are of other resamples, of another number of keys, or on another scale.
    """
    if not a.people or a.people != b.people or len(a.by_key) != len(b.by_key) or a.scale != b.scale:
        raise ValueError(
            f"expected the same resamples, as many keys and one scale, got {len(a.by_key)} and {len(b.by_key)} keys, "
            f"resamples {a.people or 'unknown'} and {b.people or 'unknown'}, scales {a.scale} and {b.scale}"
        )
    by_key = [x - y for x, y in zip(_compared(a.by_key, a.scale), _compared(b.by_key, b.scale), strict=True)]
    resampled = [
        [x - y for x, y in zip(_compared(ours, a.scale), _compared(theirs, b.scale), strict=True)]
        for ours, theirs in zip(a.resampled, b.resampled, strict=True)
    ]
    return Replicates(by_key, resampled, min(a.degrees, b.degrees), a.people)


def _compared(values: Sequence[float], scale: Scale) -> Sequence[float]:
    return [math.log(value) for value in values] if scale == "log" else values


def _share(odds: float) -> float:
    return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0


LEAST, MOST = 0.5 + 1e-9, 1 - 1e-12
"""Levels between which a p is looked for."""
FURTHEST = 700.0
"""A logarithm whose exponential is a float, as is its inverse."""


@dataclass(frozen=True)
class Paired:
    """The difference of two figures, a - b; of guesses and ranks their ratio, a / b.

    Args:
        value: The difference of the means over keys, or the ratio of their geometric means.
        low, high: Its 95 % interval.
        p: The least share of error at which the interval would leave out no difference.
        ratio: Whether it is a ratio.
    """

    value: float
    low: float
    high: float
    p: float
    ratio: bool


def paired(a: Replicates, b: Replicates) -> Paired:
    """The difference of two figures on the same people, key by key.

    Keys of the same number need not be the same keys: two methods have keys of their own, and differences between
    independent keys vary as the keys of both do. Raises ValueError as `difference`.
    """
    apart = difference(a, b)
    made, mean = components(apart), math.fsum(apart.by_key) / len(apart.by_key)
    return Paired(*_ends(made, mean, a.scale), _p(made, abs(mean), made.width), a.scale == "log")


def _ends(made: Components, mean: float, scale: Scale) -> tuple[float, float, float]:
    ends = mean, mean - made.width(), mean + made.width()
    value, low, high = map(_ratio, ends) if scale == "log" else ends
    return value, low, high


def _ratio(logarithm: float) -> float:
    """The ratio of that logarithm; one beyond floats, or whose inverse is, stands at the last that is not."""
    return math.exp(max(-FURTHEST, min(logarithm, FURTHEST)))


def one_of_many(a: Replicates, b: Replicates) -> Paired:
    """As `paired`, with the p of a difference that is to be corrected for many others (`Components.wide`)."""
    apart = difference(a, b)
    made, mean = components(apart), math.fsum(apart.by_key) / len(apart.by_key)
    return Paired(*_ends(made, mean, a.scale), _p(made, abs(mean), made.wide), a.scale == "log")


def _p(made: Components, distance: float, width: Callable[[float], float]) -> float:
    """Twice the share beyond the level at which the interval just leaves out no difference."""
    if distance == 0:
        return 1.0
    if made.error == 0:  # nothing varied, which so many keys may well do by chance
        return 2.0 ** (1 - made.keys)
    if width(MOST) < distance:
        return 2 - 2 * MOST
    if width(LEAST) > distance:
        return 1.0
    return float(2 - 2 * scipy.optimize.brentq(lambda level: width(level) - distance, LEAST, MOST, xtol=1e-13))


def holm(found: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Probabilities of several tests, corrected for their number: all that stay below 5 % are right, 95 times of 100.

    Holm 1979: the least is multiplied by how many there are, the next by one fewer, and none falls below an earlier.

    >>> holm({("a", "b"): 0.01, ("a", "c"): 0.04})
    {('a', 'b'): 0.02, ('a', 'c'): 0.04}
    """
    corrected: dict[tuple[str, str], float] = {}
    most = 0.0
    for number, name in enumerate(sorted(found, key=lambda name: found[name])):
        most = max(most, min(1.0, found[name] * (len(found) - number)))
        corrected[name] = most
    return {name: corrected[name] for name in found}


def rank_intervals(
    values: Mapping[str, float], corrected: Mapping[tuple[str, str], float]
) -> dict[str, tuple[int, int]]:
    """From which to which rank each may have, from the highest value down: by those surely above and surely below it.

    All of them hold at once, 95 times of 100, where `corrected` are the probabilities of all pairs by `holm`.

    >>> rank_intervals({"a": 3.0, "b": 2.0, "c": 1.0}, {("a", "b"): 0.5, ("a", "c"): 0.01, ("b", "c"): 0.01})
    {'a': (1, 2), 'b': (1, 2), 'c': (3, 3)}
    """
    sure = [names for names, p in corrected.items() if p < UNLIKELY]
    above = {name: _others(name, sure, values, higher=True) for name in values}
    below = {name: _others(name, sure, values, higher=False) for name in values}
    return {name: (1 + above[name], len(values) - below[name]) for name in values}


def _others(name: str, sure: Sequence[tuple[str, str]], values: Mapping[str, float], *, higher: bool) -> int:
    others = [b if a == name else a for a, b in sure if name in (a, b)]
    return sum((values[other] > values[name]) == higher for other in others)
