"""An axis of a picture: from figures to places, with round numbers as ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.results.records import ScoreRecord
from leaderboard.entries import number

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
TICKS = 6
MARGIN = 0.06
LEAST, MOST = 1e-9, 1e100  # what is drawn: smaller ones of a logarithmic axis and larger ones stand at its end


@dataclass(frozen=True)
class Axis:
    """Where figures stand.

    Args:
        low, high: The range of figures, on the logarithmic axis their logarithms.
        start, end: Where the worst and the best end of the range stand, in units of the picture.
        ticks: Round figures within it.
        log: Whether it is logarithmic.
        flipped: Whether less is better, so that less stands at `end`.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    log: bool
    flipped: bool

    def at(self, value: float) -> float:
        """Where a figure stands; what lies beyond the range stands at its end."""
        share = (min(max(_scaled(value, self.log), self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + (1 - share if self.flipped else share) * (self.end - self.start)

    def text(self, value: float) -> str:
        """A tick in print."""
        if self.log or abs(value) >= 1000:
            return number(value, None if value < 1 or value >= 1e6 else 0)
        return f"{value:.3f}".rstrip("0").rstrip(".").replace("-", "−")


def axis(scores: Sequence[ScoreRecord], start: float, end: float, *, log: bool) -> Axis:
    """An axis that holds the figures, their intervals and what chance gives."""
    ends = [
        value
        for score in scores
        for value in (score.value, score.low, score.high, score.null_low, score.null_high)
        if value is not None
    ]
    scaled = [_scaled(value, log) for value in ends]
    low, high = min(scaled), max(scaled)
    room = MARGIN * (high - low) or 0.05 * abs(low) or 0.5
    low, high = low - room, high + room
    return Axis(low, high, start, end, _ticks(low, high, log), log, scores[0].better == "lower")


def logarithmic(values: Sequence[float], start: float, end: float) -> Axis:
    """A logarithmic axis that holds the figures, the least at its start."""
    scaled = [_scaled(value, True) for value in values]
    low, high = min(scaled), max(scaled)
    room = MARGIN * (high - low) or 0.5
    return Axis(low - room, high + room, start, end, _ticks(low - room, high + room, True), True, False)


def _scaled(value: float, log: bool) -> float:
    drawn = min(max(value, LEAST if log else -MOST), MOST)
    return math.log10(drawn) if log else drawn


def _ticks(low: float, high: float, log: bool) -> tuple[float, ...]:
    if log:
        powers = range(math.ceil(low), math.floor(high) + 1)
        leaves = (1.0,) if len(powers) > 2 else (1.0, 2.0, 5.0)
        values = [leaf * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for leaf in leaves]
        return tuple(value for value in values if low <= math.log10(value) <= high)
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in STEPS if each * power >= rough)
    first = math.ceil(low / step)
    return tuple(round(step * number, 12) for number in range(first, math.floor(high / step) + 1))
