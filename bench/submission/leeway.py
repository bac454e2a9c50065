"""How far a figure that was measured again may lie from that in a record.

Both are taken under the same keys. On a machine of the same kind they are the same to the last bit; elsewhere sums are
rounded in other ways, and a training that amplifies them may end within the interval and not on the figure. An interval
that a record states is its author's word: nothing is excused by it that the interval found here does not excuse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import NormalDist

import numpy as np

from bench.results.record_parts import ReplicatesRecord, ScoreRecord
from bench.submission.refit import CLOSE, alike
from bench.submission.replay import CLOSE as ROUNDED

RARE = 1e-6
"""Probabilities below it are one: no table asks for a smaller level."""
DEVIATIONS = 0.75
"""By how many standard deviations a probability may be another for the same figure: draws are others."""
Scale = Callable[[float], float]


def unlike(said: ScoreRecord, here: ScoreRecord) -> str | None:
    """Where a figure, with all that stands beside it, differs from that found here beyond its leeway; None where not.

    The rules, on a log scale where replicates are on one:

    - Each value lies in the interval of the other, which goes past an end that is the figure itself by half its other
      side; without an interval they are equal but for rounding, and of parts
      those without an interval lie no further apart than the interval of their whole is wide, or 2 %.
    - An end of an interval lies as far from its figure as here, but for half the width of the narrower.
    - What chance gives is the same but for 2 % of it or of its interval.
    - p stands for as many standard deviations as here, but for what the two values' distance accounts for.
    - n, directions, units, and which parts, ends and replicates there are, are the same.
    """
    log = here.replicates is not None and here.replicates.scale == "log"
    scale = math.log if log else _plain
    return next(_differences(said, here, scale, None), None)


def _differences(said: ScoreRecord, here: ScoreRecord, scale: Scale, room: float | None) -> Iterator[str]:
    """Differences in words; `room` is the width of the whole's interval, None for a whole."""
    for name in ("n", "better", "unit"):
        if getattr(said, name) != getattr(here, name):
            yield f"its {name} is {getattr(said, name)} in the record, and {getattr(here, name)} here"
    if lone := [name for name, value in here if value is None and getattr(said, name) is not None]:
        yield f"it has {lone[0]} in the record, and none here"
    if lone := [name for name, value in said if value is None and getattr(here, name) is not None]:
        yield f"it has no {lone[0]} in the record, and one here"
    told = f"it is {_text(said.value, said.low, said.high)} in the record, and "
    told += f"{_text(here.value, here.low, here.high)} here"
    width = 0.0 if here.low is None or here.high is None else here.high - here.low
    if room is not None and here.low is None and here.high is None:
        if not _near(said.value, here.value, max(room, CLOSE * max(abs(said.value), abs(here.value)))):
            yield told
    elif not _holds(said, here.value) or not _holds(here, said.value):
        yield told
    for what, centre, low, high in (
        ("interval", "value", "low", "high"),
        ("interval of a further key", "value", "prediction_low", "prediction_high"),
        ("interval of chance", "null", "null_low", "null_high"),
    ):
        ends = [[getattr(score, name) for name in (centre, low, high)] for score in (said, here)]
        given = [[value for value in each if value is not None] for each in ends]
        # Where they have other ends, a difference that counts first has been told.
        if len(given[0]) == len(given[1]) > 1 and not _as_wide(given[0], given[1], scale):
            yield f"its {what} is {_text(*ends[0])} in the record, and {_text(*ends[1])} here"
    if said.null is not None and here.null is not None:
        spread = 0.0 if here.null_low is None or here.null_high is None else here.null_high - here.null_low
        if not _near(said.null, here.null, CLOSE * max(abs(here.null), spread)):
            yield f"chance gives {said.null:g} in the record, and {here.null:g} here"
    if (
        said.p is not None
        and here.p is not None
        and abs(_deviations(said.p) - _deviations(here.p)) > _play(said, here, scale)
    ):
        yield f"its p is {said.p:.2g} in the record, and {here.p:.2g} here"
    if (
        said.replicates is not None
        and here.replicates is not None
        and not _repeats(said.replicates, here.replicates, width)
    ):
        yield "its replicates are others here"
    if apart := sorted(said.parts.keys() ^ here.parts.keys()):
        yield f"its part {apart[0]} is in the record or here alone"
        return
    for name, part in said.parts.items():
        if (where := next(_differences(part, here.parts[name], scale, width), None)) is not None:
            yield f"part {name}: {where}"


def _holds(score: ScoreRecord, value: float) -> bool:
    """Whether a value lies in the interval of a figure; past an end that is the figure itself by half the other side.

    A bound, as an audit shows, begins at its figure; without another end it has 2 % of it. A figure without an interval
    has what rounding takes.
    """
    below, above = ((0.0 if end is None else abs(score.value - end)) for end in (score.low, score.high))
    bare = CLOSE if (score.low, score.high) != (None, None) and not below and not above else ROUNDED
    slack = bare * abs(score.value)
    return score.value - (below or above / 2) - slack <= value <= score.value + (above or below / 2) + slack


def _as_wide(said: list[float], here: list[float], scale: Scale) -> bool:
    """Whether intervals, each as its figure and the ends that it has, reach about as far from their figures."""
    if min(*said, *here) <= 0:
        scale = _plain
    sides = [[scale(end) - scale(figure) for end in ends] for figure, *ends in (said, here)]
    widths = [abs(reach[-1] - reach[0]) if len(reach) > 1 else abs(reach[0]) for reach in sides]
    return all(_near(one, other, min(widths) / 2) for one, other in zip(*sides, strict=True))


def _play(said: ScoreRecord, here: ScoreRecord, scale: Scale) -> float:
    """By how many standard deviations p may be another."""
    if here.null_low is None or here.null_high is None:
        return DEVIATIONS
    if min(said.value, here.value, here.null_low) <= 0:
        scale = _plain
    deviation = (scale(here.null_high) - scale(here.null_low)) / 4
    return DEVIATIONS + (2 * abs(scale(said.value) - scale(here.value)) / deviation if deviation > 0 else 0)


def _deviations(p: float) -> float:
    return NormalDist().inv_cdf(min(max(p, RARE), 1 - RARE))


def _repeats(said: ReplicatesRecord, here: ReplicatesRecord, width: float) -> bool:
    """Whether replicates are of the same people and about the same figures."""
    if (said.people, said.scale, len(said.by_key)) != (here.people, here.scale, len(here.by_key)):
        return False
    a, b = (np.asarray(each.read().resampled) for each in (said, here))
    if a.shape != b.shape or not alike(said.degrees, here.degrees):
        return False
    keys = zip(said.by_key, here.by_key, strict=True)
    spreads = sorted((float(a.std()), float(b.std())))
    return (
        all(_near(one, other, max(width, CLOSE * abs(other))) for one, other in keys)
        and _near(float(a.mean()), float(b.mean()), max(width, CLOSE * abs(float(b.mean()))))
        and _near(spreads[1], spreads[0], spreads[0])
    )


def _near(a: float, b: float, room: float) -> bool:
    return abs(a - b) <= room + ROUNDED * max(1e-3, abs(a), abs(b))


def _text(value: float, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return f"{value:g}"
    return f"{value:g} ({', '.join('none' if end is None else f'{end:g}' for end in (low, high))})"


def _plain(value: float) -> float:
    return value
