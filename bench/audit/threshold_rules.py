"""Threshold rules: tests of coins by a statistic.

Rows under one key may share noise, so that a statistic that separates them says little of other keys. The choice
therefore counts rows of a key as fewer, by the intraclass correlation of their values (`independent_share`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy
import torch

from bench.audit.game_plays import Coins, Play, Statistic, Tosses, Values, decisions
from bench.evidence import Calls
from bench.statistics.epsilon_bounds import lower_bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

Keys: TypeAlias = "NDArray[np.int64]"

HUGE = 1e300
ENDS, BETWEEN, GAPS = 10, 24, 12  # candidate thresholds: at the ends, in between, in wide gaps


@dataclass(frozen=True, eq=False)
class Entry:
    """A play and the statistic read there."""

    play: Play
    statistic: Statistic


@dataclass(frozen=True, eq=False)
class Rule:
    """A test of coins by two thresholds on sign x statistic.

    A coin is called first above `high`, second below `low`; between, the test abstains. Its entries are played in turn.
    """

    entries: Sequence[Entry]
    sign: int
    low: float
    high: float

    @property
    def inputs(self) -> str:
        """Name of the game."""
        return self.entries[0].play.name if len(self.entries) == 1 else f"{len(self.entries)} games by turns"

    def calls(self, first: Coins, values: Values) -> Calls:
        """Decisions on coins by their statistic."""
        return decisions(first, self.sign * values > self.high, self.sign * values < self.low)


@dataclass(frozen=True, eq=False)
class Tried:
    """Coins (k,), values and keys of a statistic's releases."""

    entries: Sequence[Entry]
    first: Coins
    values: Values
    keys: Keys

    def best(self, *, delta: float, confidence: float) -> tuple[float, Rule]:
        """The largest lower bound of two thresholds, and its rule."""
        share = self.share
        cuts = [
            (*_cut(self.first, sign * self.values, delta=delta, confidence=confidence, share=share), sign)
            for sign in (1, -1)
        ]
        bound, low, high, sign = max(cuts, key=lambda cut: cut[0])
        return bound, Rule(self.entries, sign, low, high)

    def bound(self, rule: Rule, *, delta: float, confidence: float) -> float:
        """Lower bound of a rule on these releases."""
        calls, share = rule.calls(self.first, self.values), self.share
        counts = share * calls.correct, share * calls.guesses
        return float(lower_bound(*counts, round(share * calls.trials), delta=delta, confidence=confidence))

    def with_more(self, first: Coins, values: Values, keys: Keys) -> Tried:
        """These releases and others, under other keys."""
        apart = keys + (self.keys.max() + 1 if len(self.keys) else 0)
        parts = (self.first, first), (self.values, values), (self.keys, apart)
        return Tried(self.entries, *(np.concatenate(pair) for pair in parts))

    @property
    def share(self) -> float:
        """Share of the coins that counts as independent."""
        return independent_share(self.first, self.values, self.keys)


def independent_share(first: Coins, values: Values, keys: Keys) -> float:
    """Effective number of independent coins, as a share of all.

    m rows of one key and coin count as m / (1 + (m - 1) c), with the intraclass correlation c of the values' ranks
    among keys (Fisher 1925; the design effect of Kish 1965). It is 1 if there is one key, for nothing is known then.
    """
    if len(np.unique(keys)) == len(keys):
        return 1.0
    counted = 0.0
    for side in (first, ~first):
        if side.any():
            _, groups, sizes = np.unique(keys[side], return_inverse=True, return_counts=True)
            correlation = _intraclass(scipy.stats.rankdata(values[side]), groups, sizes)
            counted += float((sizes / (1 + (sizes - 1) * correlation)).sum())
    return counted / len(first)


def _intraclass(values: Values, groups: Keys, sizes: Keys) -> float:
    """Intraclass correlation of values (k,), by analysis of variance."""
    count, keys = len(values), len(sizes)
    if keys in (1, count):
        return 1.0
    means = np.bincount(groups, values) / sizes
    between = float((sizes * (means - values.mean()) ** 2).sum()) / (keys - 1)
    within = float(((values - means[groups]) ** 2).sum()) / (count - keys)
    usual = (count - float((sizes**2).sum()) / count) / (keys - 1)
    whole = between + (usual - 1) * within
    return min(max((between - within) / whole, 0.0), 1.0) if whole > 0 else 0.0


def numbers(statistic: Statistic, tosses: Tosses) -> Values:
    """The statistic's values; NaN becomes 0."""
    values: Values = statistic.of(tosses).to(torch.float64).nan_to_num(nan=0.0, posinf=HUGE, neginf=-HUGE).cpu().numpy()
    return values


def _cut(
    first: Coins, values: Values, *, delta: float, confidence: float, share: float = 1.0
) -> tuple[float, float, float]:
    """(bound, low, high): the thresholds with the largest lower bound."""
    cuts = _cuts(np.unique(values))
    heads, tails = (np.sort(values[side]) for side in (first, ~first))
    # Numbers of coins of either kind above and below every cut.
    above = [len(side) - np.searchsorted(side, cuts, side="right") for side in (heads, tails)]
    below = [np.searchsorted(side, cuts, side="left") for side in (heads, tails)]
    correct = below[1][:, None] + above[0][None, :]
    guesses = correct + below[0][:, None] + above[1][None, :]
    bounds = lower_bound(
        share * correct, share * guesses, round(share * len(first)), delta=delta, confidence=confidence
    )
    bounds[cuts[:, None] > cuts[None, :]] = -np.inf
    low, high = np.unravel_index(int(bounds.argmax()), bounds.shape)
    return float(bounds[low, high]), float(cuts[low]), float(cuts[high])


def _cuts(values: Values) -> Values:
    """Candidate thresholds: halfway between values (unique, ascending), thinned out, and both ends."""
    halves = values[:-1] / 2 + values[1:] / 2
    if len(halves) > 2 * ENDS + GAPS + BETWEEN:
        places = np.arange(len(halves))
        inner = np.linspace(ENDS, len(halves) - ENDS - 1, BETWEEN).round().astype(np.int64)
        wide = np.argsort(values[1:] / 2 - values[:-1] / 2)[-GAPS:]  # equal values are far from near ones
        halves = halves[np.unique(np.concatenate((places[:ENDS], inner, wide, places[-ENDS:])))]
    return np.concatenate(([-np.inf], halves, [np.inf]))
