"""Plateau of a learning curve, at which learned attacks stop.

A figure is taken on held-out keys as an attack learns (lower is better). The attack is on a plateau when the second
half of its steps brought no improvement beyond the figure's own noise: the best smoothed figure of the second half
against the best of the first half, or against the figure before the first step. Smoothed figures are means of a quarter
of the checks so far, of three at least; noise is read from the differences between consecutive checks. The share of
the steps grows with the steps taken, so that an attack that was long at chance is given as long again, and no plateau
counts before a least number of steps.

A few rounds with a figure each are judged by other tests (`levelled`), for means of the last rounds would hide a late
fall, and a fall would count as noise. Over the last two thirds of the rounds there must be no falling line, by the
error that residuals leave to its slope, and no last rounds below those before them, by the spread of those before.
In 20 rounds of noise alone 3 % are called falling; of falls by a quarter of the noise a round, 7 % pass. The same links
are ranked in every round, so that their figure drifts smoothly: over these rounds it must fall by more than its own
error over links.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

SHARE = 0.5
SMOOTHED, PART = 3, 4
NOISE = 2.0  # standard errors of a difference
TINY = 5e-4  # of the figure before the first step: no smaller improvement counts
FEWEST = 16  # rounds: in fewer a slow fall does not show under its noise
SPREAD = math.log2(math.e)  # standard deviation of the binary logarithm of a random rank
SLOPE, DROP = 2.3, 3.5  # standard errors of a fall; many drops are tried, and one slope


@dataclass
class Plateau:
    """Watches held-out figures and says when learning has ended.

    >>> watch = Plateau(before=4.0, least=100)
    >>> [watch.reached(step, 4.0) for step in (25, 50, 75, 100)]
    [False, False, False, True]

    Args:
        before: The figure of an attack that knows nothing.
        least: Steps before which no plateau counts.
        curve: The steps and figures so far.
    """

    before: float
    least: int
    curve: list[tuple[int, float]] = field(default_factory=list)

    def reached(self, step: int, figure: float) -> bool:
        """Take in a figure; True on a plateau."""
        self.curve.append((step, figure))
        if step < self.least:
            return False
        width = max(SMOOTHED, len(self.curve) // PART)
        figures = [figure for _, figure in self.curve]
        smoothed = [
            (self.curve[end - 1][0], sum(figures[end - width : end]) / width) for end in range(width, len(figures) + 1)
        ]
        half = (1 - SHARE) * step
        earlier = min((figure for at, figure in smoothed if at <= half), default=self.before)
        later = min((figure for at, figure in smoothed if at > half), default=-math.inf)
        steps = [b - a for (at, a), b in zip(self.curve, figures[1:], strict=False) if at > half]
        # Consecutive figures differ by two errors, and so do the two means.
        noise = NOISE * math.sqrt(sum(change**2 for change in steps) / max(len(steps), 1) / width)
        return min(earlier, self.before) - later <= max(noise, TINY * self.before)


def levelled(figures: Sequence[float], links: int = 0) -> bool:
    """True if the last two thirds of rounds fell no more.

    >>> levelled([8.0, 7.9, 8.1, 7.95] * 5), levelled([8.0] * 20 + [7.0]), levelled([8.0, 7.9, 8.1, 7.95])
    (True, False, False)

    Args:
        figures: Before the first round and after each, lower is better. Fewer than `FEWEST` rounds are never level.
        links: Of mean binary logarithms of ranks, the number of links that they are means over: a fall below the error
            of such a mean at chance is none. 0 for other figures.
    """
    rounds = len(figures) - 1
    if rounds < FEWEST:
        return False
    last = torch.tensor(figures[1 + rounds // 3 :], dtype=torch.float64)
    many, tiny = len(last), max(TINY * abs(figures[0]), SPREAD / math.sqrt(links) if links else 0.0)
    centred = torch.arange(many, dtype=torch.float64) - (many - 1) / 2
    slope = float(centred @ last / centred.square().sum())
    residuals = last - last.mean() - slope * centred
    error = math.sqrt(float(residuals.square().sum()) / (many - 2) / float(centred.square().sum()))
    if -slope > max(SLOPE * error, tiny / many):
        return False
    for late in range(1, many // 2 + 1):
        before, after = last[:-late], last[-late:]
        error = float(before.std()) * math.sqrt(1 / late + 1 / len(before))
        if float(before.mean() - after.mean()) > max(DROP * error, tiny):
            return False
    return True
