"""Plateau of a learning curve, at which learned attacks stop.

A figure is taken on held-out keys as an attack learns (lower is better). The attack is on a plateau when the second
half of its steps brought no improvement beyond the figure's own noise: the best smoothed figure of the second half
against the best of the first half, or against the figure before the first step. Smoothed figures are means of a quarter
of the checks so far, of three at least; noise is read from the differences between consecutive checks. The share of
the steps grows with the steps taken, so that an attack that was long at chance is given as long again, and no plateau
counts before a least number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

SHARE = 0.5
SMOOTHED, PART = 3, 4
NOISE = 2.0  # standard errors of a difference
TINY = 5e-4  # of the figure before the first step: no smaller improvement counts


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


def levelled(figures: Sequence[float]) -> bool:
    """True if the second half of rounds brought no improvement beyond noise.

    >>> levelled([8.0, 7.9, 8.1, 7.95, 8.0, 8.05, 7.9, 8.0]), levelled([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    (True, False)

    Args:
        figures: Before the first round and after each, lower is better; two at least.
    """
    rounds = len(figures) - 1
    watch = Plateau(figures[0], least=rounds)
    return [watch.reached(number, figure) for number, figure in enumerate(figures[1:], start=1)][-1]
