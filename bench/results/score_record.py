"""A figure in record form."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from bench.contract.sound_score import sound
from bench.results.part import Count, Part
from bench.results.replicates_record import ReplicatesRecord, replicates_record
from bench.types import Score


class ScoreRecord(Part):
    """A figure with its 95 % interval, what chance gives (and its 95 % interval), and the direction an owner wants.

    Args:
        value: The figure.
        low, high: The 95 % confidence interval of what the figure estimates, over people and keys; null where none can
            be given, and `note` says why.
        prediction_low, prediction_high: Where the figure under one further key would fall, 95 % of the time; null where
            fewer than two keys were looked at.
        null_low, null_high: The 95 % interval of what chance gives.
        better: The direction that is better for the data owner.
        unit: What the figure counts.
        note: How the interval came about, or why there is none.
        parts: The same figure by finding, class or level, where there are several.
    """

    value: float
    low: float | None
    high: float | None
    n: Count = Field(description="rows, grid rows or repeats behind the figure")
    null: float | None = Field(description="what chance gives, where known")
    null_low: float | None
    null_high: float | None
    p: float | None = Field(default=None, description="probability under chance of a figure at least so far from it")
    better: Literal["higher", "lower"]
    unit: str
    note: str = ""
    prediction_low: float | None = None
    prediction_high: float | None = None
    replicates: ReplicatesRecord | None = Field(
        default=None, description="by key and resample; of the whole, not parts"
    )
    parts: dict[str, ScoreRecord] = Field(default={})


def score_record(score: Score, *, better: Literal["higher", "lower"], unit: str) -> ScoreRecord:
    """A Score in record form. Raises ContractError as `bench check` does, by the same rule (`sound`)."""
    return _recorded(sound(score), better, unit)


def _recorded(score: Score, better: Literal["higher", "lower"], unit: str) -> ScoreRecord:
    return ScoreRecord(
        value=score.value, low=score.low, high=score.high, n=score.n,
        null=score.null, null_low=score.null_low, null_high=score.null_high, p=score.p,
        better=better, unit=unit, note=score.note, prediction_low=score.prediction_low,
        prediction_high=score.prediction_high, replicates=replicates_record(score.replicates),
        parts={
            name: _recorded(replace(part, replicates=None), better, unit)
            for name, part in sorted(score.parts.items())
        },
    )  # fmt: skip
