"""A figure in record form."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from bench.results.part import Part
from bench.types import Score


class ScoreRecord(Part):
    """A figure with its 95 % interval, what chance gives (and its 95 % interval), and the direction an owner wants.

    Args:
        value: The figure.
        low, high: Its 95 % interval; null where none can be given, and `note` says why.
        null_low, null_high: The 95 % interval of what chance gives.
        better: The direction that is better for the data owner.
        unit: What the figure counts.
        note: How the interval came about, or why there is none.
        parts: The same figure by finding, class or level, where there are several.
    """

    value: float
    low: float | None
    high: float | None
    n: int = Field(description="rows, grid rows or repeats behind the figure")
    null: float | None = Field(description="what chance gives, where known")
    null_low: float | None
    null_high: float | None
    p: float | None = Field(default=None, description="probability under chance of a figure at least so far from it")
    better: Literal["higher", "lower"]
    unit: str
    note: str = ""
    parts: dict[str, ScoreRecord] = Field(default={})


def score_record(score: Score, *, better: Literal["higher", "lower"], unit: str) -> ScoreRecord:
    """A Score in record form; raises ValueError where the figure is not finite."""
    if not math.isfinite(score.value):
        raise ValueError(f"a score must be finite, got {score.value}; raise NotApplicable with the reason instead")
    return ScoreRecord(
        value=score.value, low=score.low, high=score.high, n=score.n,
        null=score.null, null_low=score.null_low, null_high=score.null_high, p=score.p,
        better=better, unit=unit, note=score.note,
        parts={name: score_record(part, better=better, unit=unit) for name, part in sorted(score.parts.items())},
    )  # fmt: skip
