"""The columns of the board, as the records describe them: each metric brings its own."""

from __future__ import annotations

from collections.abc import Iterable

from bench.contract.metric import GROUPS
from bench.results.records import MetricRecord, Record


class Column(MetricRecord):
    """A metric as the board shows it: what records say of it, under the name that they give it."""

    name: str

    @property
    def arrow(self) -> str:
        """An arrow in the direction that is better for the data owner."""
        return "↑" if self.better == "higher" else "↓"


def columns(records: Iterable[Record], others: Iterable[Record] = ()) -> tuple[Column, ...]:
    """Every metric that a record was asked for, in the order of the board; of records that disagree the newest counts.

    What `others` say of a metric counts where none of `records` describes it. Groups stand in the order of `GROUPS`,
    others after them by name; within a group metrics stand by their `order`.
    """
    found: dict[str, MetricRecord] = {}
    for some in (others, records):
        for record in sorted(some, key=lambda record: (record.created, record.cell, record.evaluator)):
            found |= record.metrics
    made = [Column(name=name, **metric.model_dump()) for name, metric in found.items()]
    return tuple(sorted(made, key=_place))


def _place(column: Column) -> tuple[int, str, int, str]:
    group = GROUPS.index(column.group) if column.group in GROUPS else len(GROUPS)
    return group, column.group, column.order, column.name
