"""A metric in record form."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal, cast

from pydantic import Field

from bench.contract.metric import MOST_DIGITS
from bench.results.part import Part, Whole
from bench.types import Metric, column_of


class MetricRecord(Part):
    """A metric as tables show it, from the column that it carries, with the direction an owner wants and its unit.

    Args:
        title: What stands in the header.
        meaning: What the figure measures, in a sentence.
        better: The direction that is better for the data owner.
        unit: What the figure counts.
    """

    written: str = Field(description="the metric as the command line takes it; of a file its name alone")
    title: str
    meaning: str
    group: str = Field(description="the header above its column")
    digits: int | None = Field(
        ge=0, le=MOST_DIGITS, description="decimals to print; null for about three significant digits"
    )
    chance: str = Field(description="the end of the sentence 'Chance gives ...'; empty where chance gives nothing")
    order: Whole = Field(description="place within the group, lower first")
    better: Literal["higher", "lower"]
    unit: str


def metric_record(cls: type, written: str) -> MetricRecord:
    """A metric class in record form, as it was written.

    Raises:
        TypeError: It carries no column.
        ValueError: Its direction is none.
    """
    column, metric = column_of(cls), cast("type[Metric[object]]", cls)
    return MetricRecord(written=written, **asdict(column), better=metric.better, unit=metric.unit)
