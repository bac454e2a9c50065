"""What the records of a study hold for the columns of its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.results.record_parts import ScoreRecord
from bench.results.records import Record

Columns = Mapping[str, tuple[str, str | None]]
"""By title: the metric, and the attack that it is of; None for what no attack measures."""


def scores(record: Record, columns: Columns) -> Iterator[tuple[str, ScoreRecord]]:
    """Title and score of each column that the record has a figure for."""
    own = record.attack.name if record.attack else None
    for title, (metric, attack) in columns.items():
        score = record.scores.get(metric)
        if score is not None and own == attack:
            yield title, score
