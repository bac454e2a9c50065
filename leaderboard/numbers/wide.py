"""The board as one wide table: a line a row, for each metric of the board its figure, interval and source."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from leaderboard.board import Row
from leaderboard.columns import Column
from leaderboard.decisions import created
from leaderboard.entries import Entry
from leaderboard.intake import Intake
from leaderboard.numbers.escapes import Value
from leaderboard.numbers.tables import Kind, Table
from leaderboard.standing import standing


def _bound(epsilon: float | None) -> float:
    return math.inf if epsilon is None else epsilon


OWN: Mapping[str, tuple[Kind, Callable[[Row, Intake], Value]]] = {
    "row": (str, lambda row, _: row.id),
    "dataset": (str, lambda row, _: row.dataset),
    "method": (str, lambda row, _: row.label),
    "preset": (str, lambda row, _: row.preset),
    "seed": (int, lambda row, _: row.seed),
    "keys": (int, lambda row, _: row.keys),
    "tier": (str, lambda row, taken: taken.tier(row).word),
    "verdict": (str, lambda row, _: standing(row).word),
    "verdict in full": (str, lambda row, _: standing(row).sentence),
    "not rated": (str, lambda row, _: row.unrated or None),
    "caveat": (str, lambda row, _: row.caveat or None),
    "claimed epsilon": (float, lambda row, _: _bound(row.claim.epsilon) if row.claim else None),
    "derived epsilon": (float, lambda row, _: _bound(row.claim.derived) if row.claim else None),
    "delta": (float, lambda row, _: row.claim.delta if row.claim else None),
    "claim per": (str, lambda row, _: row.claim.per if row.claim else None),
    "device": (str, lambda row, _: row.device),
    "throughput measured on": (str, lambda row, _: row.timed_on or None),
    "created": (str, lambda row, _: created(row)),
}
"""What a line says of the row itself: what kind of value, and which."""


def wide(taken: Intake, columns: Sequence[Column]) -> Table:
    """The table; of each metric five columns: figure, interval, the evaluator that gave it, and why there is none."""
    kinds: dict[str, Kind] = {name: kind for name, (kind, _) in OWN.items()}
    for column in columns:
        kinds |= dict(zip(_names(column), (float, float, float, str, str), strict=True))
    lines = []
    for row in taken.rows:
        line: list[Value] = [value(row, taken) for _, value in OWN.values()]
        for column in columns:
            line += _places(row.entries[column.name])
        lines.append(line)
    return Table(kinds, lines)


def _names(column: Column) -> list[str]:
    """The five columns of a metric; one that is called like a column of the row itself is told from it."""
    name = f"{column.name} (metric)" if column.name in OWN else column.name
    return [name, *(f"{name}: {what}" for what in ("low", "high", "by", "missing"))]


def _places(entry: Entry) -> list[Value]:
    score = entry.score
    if score is None:
        return [None, None, None, None, f"{entry.text}: {entry.reason}".removesuffix(": ")]
    return [score.value, score.low, score.high, entry.by, None]
