"""How sure a figure is: the variance that people and keys give its mean over keys, and intervals made from it.

Of a figure theta[k, people], the mean over K keys is printed. With theta = mu + person + key + interaction, its
variance is var(person) + (var(key) + var(interaction)) / K. Resampling people under fixed keys gives A, the variance
over resamples of the mean over keys, which estimates var(person) + var(interaction) / K; keys on the same people give
B, the variance over keys, which estimates var(key) + var(interaction); what resamples move in one key and not in all,
C, estimates var(interaction), counted in both. The mean's variance is A + max(0, B - C) / K.

Each part is multiplied by the square of its own t quantile before the root is taken (Cochran's way of putting variances
of unequal certainty together; its kin is MOVER, Zou and Donner 2008): Satterthwaite's degrees of freedom, estimated
from three keys, let intervals fall to 91 % coverage where this holds 94 % (`tests/benchmarks/interval_coverage.py`).
With one key, A is all there is: what keys and trainings add is left out, and the note says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy

from bench.contract.replicates import Scale
from bench.statistics.proportion import clopper_pearson
from bench.types import Replicates, Score

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
