"""The test that is counted: chosen on releases of its own, fixed before the others are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bench.audit.play import Play, Statistic, Tosses
from bench.evidence import Calls
from bench.statistics.epsilon_bounds import lower_bound

HUGE = 1e300
ENDS, BETWEEN, GAPS = 10, 24, 12  # places at which a test may begin to guess: at the ends, in between, in wide gaps
Values = NDArray[np.float64]
Coins = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Entry:
    """A play and the statistic that a rule reads there."""

    play: Play
    statistic: Statistic


@dataclass(frozen=True, eq=False)
class Rule:
    """A test: a coin is called first above `high`, second below `low`, of sign x statistic; between, it abstains.

    Its entries are played by turns.
    """

    entries: Sequence[Entry]
    sign: int
    low: float
    high: float

    @property
    def inputs(self) -> str:
        """What is played."""
        return self.entries[0].play.name if len(self.entries) == 1 else f"{len(self.entries)} games by turns"

    def calls(self, first: Coins, values: Values) -> Calls:
        """What it calls coins by their statistic."""
        above, below = self.sign * values > self.high, self.sign * values < self.low
        hits, misses = int((above & first).sum()), int((below & first).sum())
        return Calls(len(first), int(first.sum()), hits, int(above.sum()) - hits, misses, int(below.sum()) - misses)


@dataclass(frozen=True, eq=False)
class Tried:
    """A statistic on releases of the choice: (k,) coins and values."""

    entries: Sequence[Entry]
    first: Coins
    values: Values

    def best(self, *, delta: float, confidence: float) -> tuple[float, Rule]:
        """The largest lower bound that two thresholds reach, and the rule that has them."""
        found = [(*_cut(self.first, sign * self.values, delta=delta, confidence=confidence), sign) for sign in (1, -1)]
        bound, low, high, sign = max(found, key=lambda one: one[0])
        return bound, Rule(self.entries, sign, low, high)


def numbers(statistic: Statistic, tosses: Tosses) -> Values:
    """The statistic's values; one that cannot be computed says nothing, which is 0."""
    found: Values = statistic.of(tosses).to(torch.float64).nan_to_num(nan=0.0, posinf=HUGE, neginf=-HUGE).cpu().numpy()
    return found


def _cut(first: Coins, values: Values, *, delta: float, confidence: float) -> tuple[float, float, float]:
    """(bound, low, high): the two thresholds with the largest lower bound."""
    cuts = _cuts(np.unique(values))
    heads, tails = (np.sort(values[side]) for side in (first, ~first))
    # Above every cut, and below it: how many coins of either kind.
    above = [len(side) - np.searchsorted(side, cuts, side="right") for side in (heads, tails)]
    below = [np.searchsorted(side, cuts, side="left") for side in (heads, tails)]
    correct = below[1][:, None] + above[0][None, :]
    guesses = correct + below[0][:, None] + above[1][None, :]
    bounds = lower_bound(correct, guesses, len(first), delta=delta, confidence=confidence)
    bounds[cuts[:, None] > cuts[None, :]] = -np.inf
    low, high = np.unravel_index(int(bounds.argmax()), bounds.shape)
    return float(bounds[low, high]), float(cuts[low]), float(cuts[high])


def _cuts(values: Values) -> Values:
    """Where to cut between values (unique, rising): halfway between neighbours, beyond both ends, and not too many.

    Halfway, so that a test that separates all is not undone by the next value.
    """
    halves = values[:-1] / 2 + values[1:] / 2
    if len(halves) > 2 * ENDS + GAPS + BETWEEN:
        places = np.arange(len(halves))
        inner = np.linspace(ENDS, len(halves) - ENDS - 1, BETWEEN).round().astype(np.int64)
        wide = np.argsort(values[1:] / 2 - values[:-1] / 2)[-GAPS:]  # what is equal lies apart from what is near
        halves = halves[np.unique(np.concatenate((places[:ENDS], inner, wide, places[-ENDS:])))]
    return np.concatenate(([-np.inf], halves, [np.inf]))
