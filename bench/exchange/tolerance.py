"""Tolerances between a recorded figure and the same figure measured again.

On a machine of the same kind both agree to the last bit. Elsewhere sums round differently, and a training that
amplifies this may end at another value within the interval. Intervals in a record are its author's word, so the
interval found here has to excuse a difference, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from statistics import NormalDist

import numpy as np
from pydantic import JsonValue

from bench.exchange.evidence_check import ROUNDING
from bench.results.record_parts import ReplicatesRecord, ScoreRecord

CLOSE = 0.02
"""Relative tolerance of numbers from training, whose sums another machine rounds differently."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
RARE = 1e-6
"""Smallest p that is told apart: no table asks for a smaller level."""
DEVIATIONS = 0.75
"""Tolerance of p for the same figure, in standard deviations, because draws differ."""
Scale = Callable[[float], float]


def alike(a: JsonValue, b: JsonValue) -> bool:
    """True if two values agree, numbers (also within texts) to `CLOSE`.

    >>> alike("scale 2.001", "scale 2.002"), alike("scale 2", "scale 3"), alike(True, 1)
    (True, False, False)
    """
    if isinstance(a, str) and isinstance(b, str):
        if a == b:
            return True
        numbers = [list(map(float, NUMBER.findall(text))) for text in (a, b)]
        return NUMBER.sub("#", a) == NUMBER.sub("#", b) and all(map(_close, *numbers))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[name], b[name]) for name in a)
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return _close(a, b)
    return a == b


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-9)


def score_difference(stated: ScoreRecord, here: ScoreRecord) -> str | None:
    """The first difference of two figures beyond the tolerance, or None.

    The rules, on a log scale if replicates are on one:

    - Each value lies in the other's interval, extended by half its other side past an end that is the figure itself.
      Without an interval both agree but for rounding; parts without one lie within the width of their whole's
      interval, or 2 %.
    - An end of an interval lies as far from its figure as here, within half the width of the narrower interval.
    - The value by chance agrees within 2 % of itself or of its interval.
    - p stands for as many standard deviations as here, beyond those that the distance of the values explains.
    - n, directions, units, parts, ends and replicates are the same.
    """
    log = here.replicates is not None and here.replicates.scale == "log"
    return next(_differences(stated, here, math.log if log else _identity, None), None)


def _differences(stated: ScoreRecord, here: ScoreRecord, scale: Scale, whole: float | None) -> Iterator[str]:
    """Differences in words; `whole` is the width of the whole's interval."""
    for name in ("n", "better", "unit"):
        if getattr(stated, name) != getattr(here, name):
            yield f"its {name} is {getattr(stated, name)} in the record, and {getattr(here, name)} here"
    if extra := [name for name, value in here if value is None and getattr(stated, name) is not None]:
        yield f"it has {extra[0]} in the record, and none here"
    if lacking := [name for name, value in stated if value is None and getattr(here, name) is not None]:
        yield f"it has no {lacking[0]} in the record, and one here"
    width = 0.0 if here.low is None or here.high is None else here.high - here.low
    if whole is not None and here.low is None and here.high is None:
        agree = _near(stated.value, here.value, max(whole, CLOSE * max(abs(stated.value), abs(here.value))))
    else:
        agree = _holds(stated, here.value) and _holds(here, stated.value)
    if not agree:
        first, second = (_text(score.value, score.low, score.high) for score in (stated, here))
        yield f"it is {first} in the record, and {second} here"
    for what, centre, low, high in (
        ("interval", "value", "low", "high"),
        ("interval of a further key", "value", "prediction_low", "prediction_high"),
        ("interval of chance", "null", "null_low", "null_high"),
    ):
        ends = [[getattr(score, name) for name in (centre, low, high)] for score in (stated, here)]
        bounds = [[value for value in each if value is not None] for each in ends]
        # If they have different ends, the check above has said so.
        if len(bounds[0]) == len(bounds[1]) > 1 and not _as_wide(bounds[0], bounds[1], scale):
            yield f"its {what} is {_text(*ends[0])} in the record, and {_text(*ends[1])} here"
    if stated.null is not None and here.null is not None:
        spread = 0.0 if here.null_low is None or here.null_high is None else here.null_high - here.null_low
        if not _near(stated.null, here.null, CLOSE * max(abs(here.null), spread)):
            yield f"chance gives {stated.null:g} in the record, and {here.null:g} here"
    if not _p_agrees(stated, here, scale):
        yield f"its p is {stated.p:.2g} in the record, and {here.p:.2g} here"
    if not _same_replicates(stated.replicates, here.replicates, width):
        yield "its replicates differ here"
    if apart := sorted(stated.parts.keys() ^ here.parts.keys()):
        yield f"its part {apart[0]} is in the record or here alone"
        return
    for name, part in stated.parts.items():
        if (difference := next(_differences(part, here.parts[name], scale, width), None)) is not None:
            yield f"part {name}: {difference}"


def _holds(score: ScoreRecord, value: float) -> bool:
    """True if a value lies in a figure's extended interval.

    The extension is half the other side. The bound of an audit, which has no other end, gets 2 % of the figure; a
    figure without an interval gets rounding.
    """
    below, above = ((0.0 if end is None else abs(score.value - end)) for end in (score.low, score.high))
    bare = CLOSE if (score.low, score.high) != (None, None) and not below and not above else ROUNDING
    slack = bare * abs(score.value)
    return score.value - (below or above / 2) - slack <= value <= score.value + (above or below / 2) + slack


def _as_wide(stated: list[float], here: list[float], scale: Scale) -> bool:
    """True if two intervals reach about as far from their figures."""
    if min(*stated, *here) <= 0:
        scale = _identity
    sides = [[scale(end) - scale(figure) for end in ends] for figure, *ends in (stated, here)]
    widths = [abs(reach[-1] - reach[0]) if len(reach) > 1 else abs(reach[0]) for reach in sides]
    return all(_near(one, other, min(widths) / 2) for one, other in zip(*sides, strict=True))


def _p_agrees(stated: ScoreRecord, here: ScoreRecord, scale: Scale) -> bool:
    """True if p is missing or about the same in standard deviations."""
    if stated.p is None or here.p is None:
        return True
    tolerance = DEVIATIONS
    if here.null_low is not None and here.null_high is not None:
        if min(stated.value, here.value, here.null_low) <= 0:
            scale = _identity
        deviation = (scale(here.null_high) - scale(here.null_low)) / 4
        tolerance += 2 * abs(scale(stated.value) - scale(here.value)) / deviation if deviation > 0 else 0
    first, second = (NormalDist().inv_cdf(min(max(p, RARE), 1 - RARE)) for p in (stated.p, here.p))
    return abs(first - second) <= tolerance


def _same_replicates(stated: ReplicatesRecord | None, here: ReplicatesRecord | None, width: float) -> bool:
    """True if replicates are missing, or of the same people and figures."""
    if stated is None or here is None:
        return True
    if (stated.people, stated.scale, len(stated.by_key)) != (here.people, here.scale, len(here.by_key)):
        return False
    a, b = (np.asarray(replicates.read().resampled) for replicates in (stated, here))
    if a.shape != b.shape or not alike(stated.degrees, here.degrees):
        return False
    narrow, wide = sorted((float(a.std()), float(b.std())))
    means = float(a.mean()), float(b.mean())
    pairs = [*zip(stated.by_key, here.by_key, strict=True), means]
    return all(_near(x, y, max(width, CLOSE * abs(y))) for x, y in pairs) and _near(wide, narrow, narrow)


def _near(a: float, b: float, room: float) -> bool:
    return abs(a - b) <= room + ROUNDING * max(1e-3, abs(a), abs(b))


def _text(value: float, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return f"{value:g}"
    return f"{value:g} ({', '.join('none' if end is None else f'{end:g}' for end in (low, high))})"


def _identity(value: float) -> float:
    return value
