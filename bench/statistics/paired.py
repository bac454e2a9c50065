"""Two figures compared on the same people and keys, and many of them at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import scipy

from bench.contract.replicates import Scale
from bench.statistics.chance import UNLIKELY
from bench.statistics.components import Components, components, difference
from bench.types import Replicates

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
