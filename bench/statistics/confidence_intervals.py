"""Confidence intervals and tests of figures over people and keys.

Of a figure theta[k, people], the mean over K keys is printed. With theta = mu + person + key + interaction, its
variance is var(person) + (var(key) + var(interaction)) / K. Resampling people under fixed keys gives A, the variance
over resamples of the mean over keys, which estimates var(person) + var(interaction) / K. Keys on the same people give
B, the variance over keys, which estimates var(key) + var(interaction). C, the variance of resamples in one key about
the mean over keys, estimates var(interaction), counted in both. The mean's variance is A + max(0, B - C) / K.

An attack that learns may be trained a few times, with keys dealt to T trainings: theta has a training part too, and
the keys of a training share it. The variance over keys is then taken within trainings, and what the trainings' means
vary beyond that is var(training), by the analysis of variance of a nested design (Searle, Casella and McCulloch 1992,
"Variance components", section 3.6); but only a quarter of the keys' mean square is taken off: with two trainings the
whole left intervals of .87 and limits of .92 where a training moves a figure about as much as a key, a quarter .93 and
.95. The wider of both ways counts. One training does not show what trainings vary; the note says so.

Each part is multiplied by the square of its own t quantile before the root is taken (Cochran's way of combining
variances of unequal certainty; see also MOVER, Zou and Donner 2008). Satterthwaite's degrees of freedom, estimated from
three keys, give 91 % coverage; this gives 94 % (`tests/campaigns/coverage_of_intervals.py`). With one key only A is
known; the note says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy

from bench.contract.replicates import Scale
from bench.types import Replicates, Score

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

RARE = 0.001
"""Significance level of a verdict: one false alarm in 1000 measurements."""
UNLIKELY = 0.05
"""Significance level of a comparison: 5 %."""


Rates: TypeAlias = "NDArray[np.float64]"


def clopper_pearson(hits: ArrayLike, trials: ArrayLike, level: float) -> tuple[Rates, Rates]:
    """One-sided lower and upper bounds of a proportion, level each.

    Clopper and Pearson 1934: quantiles of beta distributions; 0 for no hits, 1 for all. Hits may be fractional:
    expected hits with ties, or a mean over keys.

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


def mid_p(hits: float, trials: float, level: float) -> tuple[float, float]:
    """Lower and upper mid-P bounds of a proportion, of about `level` each.

    Lancaster 1961, "Significance tests in discrete distributions": the observed count counts half on either side.
    Clopper and Pearson's exact bounds of few trials hold far more often than they say (five trials: .975 to 1 for 95
    %). These are not exact: they hold at least .93 of the time for five trials, .92 for 33 and .91 for any number, and
    with five trials above .98 for most shares. Hits may be fractional, as there.

    >>> [round(bound, 4) for bound in mid_p(5, 10, 0.025)]
    [0.212, 0.788]
    """

    if hits <= 0:
        return 0.0, 1 - float(2 * level) ** (1 / trials)
    if hits >= trials:
        return float(2 * level) ** (1 / trials), 1.0

    def above(share: float, p: float) -> float:
        """P(more than the hits) + P(as many) / 2, less p."""
        more, as_many = (scipy.special.betainc(hits + one, trials - hits + 1 - one, share) for one in (1, 0))
        return float(more + as_many) / 2 - p

    low, high = (scipy.optimize.brentq(above, 0.0, 1.0, args=(p,)) for p in (level, 1 - level))
    return float(low), float(high)


def _counts(hits: ArrayLike, trials: ArrayLike) -> tuple[Rates, Rates]:
    k, n = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    return k, n


LEVEL = 0.975
"""Of the t quantile: a 95 % interval."""

Floats: TypeAlias = "NDArray[np.float64]"


TAKEN_OFF = 0.25
"""Share of the mean square within trainings that is taken off that between them."""


@dataclass(frozen=True)
class Nested:
    """Variance of a mean over keys that a few trainings attacked.

    Args:
        trainings: T.
        keys_alone: Variance of one key's figure within a training, less what the people hold; 0 or more.
        trainings_alone: Variance of the mean by trainings alone, and most of what keys add to it; 0 or more.
    """

    trainings: int
    keys_alone: float
    trainings_alone: float

    def square(self, level: float, keys: int) -> float:
        """Squared half-width, each part at its own t."""
        of_keys = _student(level, keys - self.trainings) ** 2 * self.keys_alone / keys
        return of_keys + _student(level, self.trainings - 1) ** 2 * self.trainings_alone


@dataclass(frozen=True)
class Components:
    """Variance components of a mean over K keys.

    In the units of the figure's scale (`Replicates.scale`).

    Args:
        keys: K.
        people: Variance of the mean over draws of people, at fixed keys (A).
        between: Variance of one key's figure over keys, at fixed people (B); 0 with one key.
        shared: The part of `between` that `people` contains too (C).
        degrees: Of freedom of `people`.
        nested: The same keys as parts of several trainings; None without such trainings.
    """

    keys: int
    people: float
    between: float
    shared: float
    degrees: float
    nested: Nested | None = None

    def width(self, level: float = LEVEL) -> float:
        """Half-width of the interval that ends at that quantile."""
        square = _student(level, self.degrees) ** 2 * self.people
        if self.keys > 1:
            more = max(0.0, self.between - self.shared) / self.keys
            of_keys = _student(level, self.keys - 1) ** 2 * more
            square += of_keys if self.nested is None else max(of_keys, self.nested.square(level, self.keys))
        return math.sqrt(square)

    def wide(self, level: float) -> float:
        """Half-width with all key variance at t with K - 1 degrees.

        For many tests at once: with three keys `width` adds nothing for keys too often, by chance, for levels
        far beyond 95 %. Two trainings tell hardly anything apart at such levels.
        """
        if self.keys == 1:
            return self.width(level)
        alone = max(0.0, self.people - self.shared / self.keys)
        square = _student(level, self.degrees) ** 2 * alone
        of_keys = _student(level, self.keys - 1) ** 2 * self.between / self.keys
        return math.sqrt(
            square + (of_keys if self.nested is None else max(of_keys, self.nested.square(level, self.keys)))
        )

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        of_keys = max(0.0, self.between - self.shared) / self.keys
        of_trainings = 0.0 if self.nested is None else self.nested.trainings_alone
        return math.sqrt(self.people + max(of_keys, of_trainings))

    @property
    def prediction(self) -> float | None:
        """95 % prediction half-width for one further key; None with one."""
        if self.keys == 1:
            return None
        return _student(LEVEL, self.keys - 1) * math.sqrt(self.between * (1 + 1 / self.keys))


def _student(level: float, degrees: float) -> float:
    """Student's t quantile, 50 times faster than `scipy.stats.t.ppf`."""
    return float(scipy.special.stdtrit(degrees, level))


def components(replicates: Replicates) -> Components:
    """The components of a figure."""
    by_key, resampled = (
        np.asarray(replicates.by_key, dtype=np.float64),
        np.asarray(replicates.resampled, dtype=np.float64),
    )
    keys, middle = len(by_key), float(by_key.mean())
    means = resampled.mean(axis=0)
    if replicates.scale == "log":  # ratios: half of the people need fewer guesses, by a factor
        people = float(np.log(means).var(ddof=1))
        by_key, resampled = by_key / middle, resampled / means
        means = np.ones_like(means)
    else:
        slope = 1 / (middle * (1 - middle)) if replicates.scale == "share" and 0 < middle < 1 else 1.0
        by_key, resampled, means = slope * by_key, slope * resampled, slope * means
        people = float(means.var(ddof=1))
    if keys == 1:
        return Components(1, people, 0.0, 0.0, replicates.degrees)
    shared = float((resampled - means).var(axis=1, ddof=1).sum()) / (keys - 1)
    nested = _nested(by_key, resampled, replicates.trainings)
    return Components(keys, people, float(by_key.var(ddof=1)), shared, replicates.degrees, nested)


def _nested(by_key: Floats, resampled: Floats, trainings: Sequence[int]) -> Nested | None:
    """None with one training, or as many as keys."""
    numbers, counts = np.unique(np.asarray(trainings, dtype=np.int64), return_counts=True)
    keys, many = len(by_key), len(numbers)
    if not 1 < many < keys:
        return None
    own = np.asarray(trainings) == numbers[:, None]
    means = own / counts[:, None]
    drawn = resampled - resampled.mean(axis=1, keepdims=True)

    def apart(table: Floats) -> tuple[float, float]:
        """Mean squares within and between trainings of (K, B)."""
        within = table - own.T @ (means @ table)
        between = means @ table - table.mean(axis=0)
        columns = table.shape[1]
        return (
            float(np.square(within).sum()) / (keys - many) / columns,
            float(counts @ np.square(between).sum(axis=1)) / (many - 1) / columns,
        )

    within, between = apart(by_key[:, None])
    shared_within, shared_between = (part * drawn.shape[1] / (drawn.shape[1] - 1) for part in apart(drawn))
    keys_alone, of_trainings = within - shared_within, between - shared_between
    size = (keys - float(np.square(counts).sum()) / keys) / (many - 1)
    alone = max(0.0, of_trainings - TAKEN_OFF * keys_alone) / size * float(np.square(counts / keys).sum())
    return Nested(many, max(0.0, keys_alone), alone)


def fewest_trainings(a: Sequence[int], b: Sequence[int]) -> Sequence[int]:
    """Of two groupings by training, that with fewer, but several, trainings.

    >>> fewest_trainings([0, 0, 1, 1], []), fewest_trainings([0, 0, 1, 1], [0, 1, 2, 2])
    ([0, 0, 1, 1], [0, 0, 1, 1])
    >>> fewest_trainings([0, 0, 0, 0], [0, 0, 1, 1])
    [0, 0, 1, 1]
    """
    trained = [each for each in (a, b) if each]
    several = [each for each in trained if len(set(each)) > 1]
    return min(several or trained, key=lambda each: len(set(each)), default=())


def around(value: float, width: float, scale: Scale) -> tuple[float, float]:
    """Interval of half-width `width` on a scale, as figures.

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


def with_interval(score: Score, replicates: Replicates, *, over: str) -> Score:
    """The score with the interval and prediction range of its replicates.

    Its note comes after that of the interval; `over` are the resampled units, in words: "test people".
    """
    parts = components(replicates)
    low, high = around(score.value, parts.width(), replicates.scale)
    text = (
        f"95 % interval over {over} and {parts.keys} keys{_of_trainings(replicates.trainings)}"
        if parts.keys > 1
        else f"95 % interval over {over} alone: one key, so that what keys and trainings vary is left out"
    )
    prediction = (None, None) if parts.prediction is None else around(score.value, parts.prediction, replicates.scale)
    return replace(
        score, low=low, high=high, prediction_low=prediction[0], prediction_high=prediction[1], replicates=replicates,
        note=f"{text}; {score.note}" if score.note else text,
    )  # fmt: skip


def _of_trainings(trainings: Sequence[int]) -> str:
    """The share of the attacker's trainings in an interval, in words."""
    many = len(set(trainings))
    if many > 1:
        return f" of {many} trainings of the attack"
    return ", of one training of the attack: what trainings vary is left out" if many else ""


def scope_of(trainings: Sequence[int]) -> str:
    """The scope of an interval over keys alone, in words."""
    return "of these people and trainings" if trainings else "of these people"


def at_least_binomial(score: Score, trials: int, *, people: int | None = None) -> Score:
    """The score with the interval of `mid_p` as the narrowest.

    A share of exactly 0 or 1 varies over no resample: then trials are `people` if fewer.
    """
    if people is not None and not 0 < score.value < 1:
        trials = min(trials, people)
    return _no_narrower(score, mid_p(score.value * trials, trials, 1 - LEVEL))


def _no_narrower(score: Score, bounds: tuple[float, float]) -> Score:
    assert score.low is not None
    assert score.high is not None
    return replace(score, low=min(score.low, bounds[0]), high=max(score.high, bounds[1]))


def over_keys(score: Score, keys: int) -> Score:
    """The score with the interval of `mid_p`, one try a key."""
    low, high = mid_p(score.value * keys, keys, 1 - LEVEL)
    rest = score.note.partition("; ")[2]
    scope = scope_of(() if score.replicates is None else score.replicates.trainings)
    note = f"95 % interval over {keys} keys, {scope} (mid-P); {rest}"
    return replace(score, low=low, high=high, prediction_low=None, prediction_high=None, note=note)


def never_certain(score: Score, people: int) -> Score:
    """The score, with an exact interval if it is 0 or 1."""
    if 0 < score.value < 1:
        return score
    low, high = map(float, clopper_pearson(score.value * people, people, 1 - LEVEL))
    return _no_narrower(score, (low, high))


def difference(a: Replicates, b: Replicates) -> Replicates:
    """Replicates of a - b (or of logarithms) on the same people.

    Raises ValueError for other resamples, another number of keys, or another scale.
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
    trainings = fewest_trainings(a.trainings, b.trainings)
    return Replicates(by_key, resampled, min(a.degrees, b.degrees), a.people, trainings=trainings)


def _compared(values: Sequence[float], scale: Scale) -> Sequence[float]:
    return [math.log(value) for value in values] if scale == "log" else values


def _share(odds: float) -> float:
    return 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0


LEAST, MOST = 0.5 + 1e-9, 1 - 1e-12
"""Search range of the level of a p."""
FURTHEST = 700.0
"""Largest logarithm whose exponential and its inverse are floats."""


@dataclass(frozen=True)
class Paired:
    """The difference of two figures, or their ratio on a log scale.

    Args:
        value: The difference of the means over keys, or the ratio of their geometric means.
        low, high: Its 95 % interval.
        p: Two-sided p of no difference, from the interval.
        ratio: True for a ratio a / b of guesses or ranks.
    """

    value: float
    low: float
    high: float
    p: float
    ratio: bool


def paired(a: Replicates, b: Replicates) -> Paired:
    """The difference of two figures on the same people; ValueError as `difference`."""
    return _compared_by(a, b, Components.width)


def one_of_many(a: Replicates, b: Replicates) -> Paired:
    """`paired` for many comparisons; p comes from `Components.wide`, to be corrected."""
    return _compared_by(a, b, Components.wide)


def _compared_by(a: Replicates, b: Replicates, width: Callable[[Components, float], float]) -> Paired:
    apart = difference(a, b)
    parts, mean = components(apart), math.fsum(apart.by_key) / len(apart.by_key)
    p = _p(parts, abs(mean), lambda level: width(parts, level))
    return Paired(*_ends(parts, mean, a.scale), p, a.scale == "log")


def _ends(parts: Components, mean: float, scale: Scale) -> tuple[float, float, float]:
    ends = mean, mean - parts.width(), mean + parts.width()
    value, low, high = map(_ratio, ends) if scale == "log" else ends
    return value, low, high


def _ratio(logarithm: float) -> float:
    """exp of the logarithm, clamped to floats with an inverse."""
    return math.exp(max(-FURTHEST, min(logarithm, FURTHEST)))


def _p(parts: Components, distance: float, width: Callable[[float], float]) -> float:
    """p at which the interval just excludes no difference."""
    if distance == 0:
        return 1.0
    if parts.error == 0:  # nothing varied, which may be chance with few keys
        return 2.0 ** (1 - parts.keys)
    if width(MOST) < distance:
        return 2 - 2 * MOST
    if width(LEAST) > distance:
        return 1.0
    return float(2 - 2 * scipy.optimize.brentq(lambda level: width(level) - distance, LEAST, MOST, xtol=1e-13))


def holm(probabilities: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Probabilities of several tests, corrected for their number.

    Holm 1979: the smallest times their number, the next times one fewer, made monotone. The family-wise error rate is 5
    %.

    >>> holm({("a", "b"): 0.01, ("a", "c"): 0.04})
    {('a', 'b'): 0.02, ('a', 'c'): 0.04}
    """
    corrected: dict[tuple[str, str], float] = {}
    largest = 0.0
    for number, name in enumerate(sorted(probabilities, key=lambda name: probabilities[name])):
        largest = max(largest, min(1.0, probabilities[name] * (len(probabilities) - number)))
        corrected[name] = largest
    return {name: corrected[name] for name in probabilities}


def rank_intervals(
    values: Mapping[str, float], corrected: Mapping[tuple[str, str], float]
) -> dict[str, tuple[int, int]]:
    """Possible ranks (from, to) of each figure, highest value first.

    Simultaneous 95 % intervals if `corrected` are the probabilities of all pairs by `holm`.

    >>> rank_intervals({"a": 3.0, "b": 2.0, "c": 1.0}, {("a", "b"): 0.5, ("a", "c"): 0.01, ("b", "c"): 0.01})
    {'a': (1, 2), 'b': (1, 2), 'c': (3, 3)}
    """
    differing = [names for names, p in corrected.items() if p < UNLIKELY]
    above = {name: _others(name, differing, values, higher=True) for name in values}
    below = {name: _others(name, differing, values, higher=False) for name in values}
    return {name: (1 + above[name], len(values) - below[name]) for name in values}


def _others(name: str, differing: Sequence[tuple[str, str]], values: Mapping[str, float], *, higher: bool) -> int:
    others = [b if a == name else a for a, b in differing if name in (a, b)]
    return sum((values[other] > values[name]) == higher for other in others)
