"""Summaries of rows by data set, by method, and by attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from bench.evaluators.membership import ClassifierMembership
from bench.results.records import Record
from leaderboard.board import Row
from leaderboard.entries import Entry, entry
from leaderboard.panel import Member, Outcome, outcome
from leaderboard.reach import MEMBERSHIP, PAIRS, Rung
from leaderboard.row_schema import BoardRow

GRAVE = (
    "broken", "membership leaks", "leaks", "no verdict", "no leak above a bound", "no membership leak above a bound",
    "not certified", "not rated",
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A method on a data set: its gravest row, and verdict counts."""

    worst: BoardRow
    words: str


@dataclass(frozen=True)
class Matrix:
    """Verdicts of methods (down) on data sets (across).

    Args:
        data: Slugs, titles, and names as short as they may be, in the order of the rows.
        methods: Names, with their places in the order of `data`; None if it never ran.
    """

    data: tuple[tuple[str, str, str], ...]
    methods: tuple[tuple[str, tuple[Place | None, ...]], ...]


def matrix(rows: Sequence[BoardRow]) -> Matrix:
    """The verdicts of all rows but those of reference methods."""
    shown = [row for row in rows if not row.reference]
    data = tuple(dict.fromkeys((row.section, row.data, row.data_name) for row in shown))
    cells: dict[tuple[str, str], list[BoardRow]] = {}
    for row in shown:
        cells.setdefault((row.plugin, row.section), []).append(row)
    methods = sorted({row.plugin for row in shown})
    return Matrix(data, tuple(
        (method, tuple(_place(cells[method, slug]) if (method, slug) in cells else None for slug, _, _ in data))
        for method in methods
    ))  # fmt: skip


def _place(rows: Sequence[BoardRow]) -> Place:
    rows = [row for row in rows if row.trusted] or rows  # rows that others handed in count only for themselves
    counts: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: -_gravity(row)):
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    words = ", ".join(f"{word} {count} of {len(rows)}" if len(rows) > 1 else word for word, count in counts.items())
    return Place(max(rows, key=_gravity), words)


def _gravity(row: BoardRow) -> int:
    """Gravity of a verdict; verdicts without a finding come last."""
    return len(GRAVE) - GRAVE.index(row.verdict) if row.verdict in GRAVE else 0


FIGURES: Mapping[str, tuple[str, ...]] = {
    PAIRS: ("guesswork", "reid-auc"),
    MEMBERSHIP: ("membership-auc", "membership-tpr"),
    ClassifierMembership.name: ("membership-auc", "membership-tpr"),
}
SCORED: tuple[Outcome, ...] = ("broken", "membership leaks", "leaks", "nothing shown")
"""Outcomes of attacks that gave figures."""
ORDER: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True)
class Attempted:
    """One attack on one row.

    Args:
        member: The attack in the row's panel; None if no panel judges its kind.
        state: The method's standing after it.
        entries: Its figures.
    """

    row: BoardRow
    record: Record
    member: Member | None
    state: Outcome
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class AttackRecord:
    """The outcomes of an attack.

    Args:
        sources: Papers.
        knowledge: The attacker's knowledge: its name, and every text that a record has for it.
        outcomes: On every row, the gravest first.
        reaches: By parameters and preset: the encoders of the ladder after it.
    """

    name: str
    kind: str
    sources: tuple[str, ...]
    knowledge: tuple[tuple[str, tuple[str, ...]], ...]
    outcomes: tuple[Attempted, ...]
    reaches: tuple[tuple[str, str, tuple[Rung, ...]], ...]

    @property
    def broken(self) -> tuple[str, ...]:
        """Methods that it breaks, or whose membership leaks, when certified."""
        return self._methods("broken", "membership leaks")

    @property
    def leaking(self) -> tuple[str, ...]:
        """Methods that leak to it when certified, and that it breaks nowhere."""
        return tuple(name for name in self._methods("leaks") if name not in self.broken)

    @property
    def share(self) -> tuple[int, int]:
        """Number of rows broken, and of rows with a certified figure."""
        counted = [one for one in self._ranked() if one.state in SCORED]
        return sum(one.state in ("broken", "membership leaks") for one in counted), len(counted)

    @property
    def reached(self) -> tuple[int, int]:
        """Number of encoders broken, and number tried."""
        rungs = [rung for _, _, some in self.reaches for rung in some]
        broken = {rung.method for rung in rungs if rung.state == "broken"}
        return len(broken), len({rung.method for rung in rungs if rung.tried})

    def _methods(self, *states: str) -> tuple[str, ...]:
        return tuple(sorted({one.row.plugin for one in self._ranked() if one.state in states}))

    def _ranked(self) -> list[Attempted]:
        """Its outcomes with controls that hold, on trusted rows of methods."""
        ranked = [one for one in self.outcomes if one.row.trusted and not one.row.reference]
        return [one for one in ranked if one.member is not None and one.member.certified]


Attempt = tuple[BoardRow, Row, Record]
"""A record of an attack with its row, as data and as analysed."""


def attack_record(kind: str, name: str, attempts: Sequence[Attempt]) -> AttackRecord:
    """The records of one attack, summed up."""
    knowledge: dict[str, dict[str, None]] = {}
    reaches: dict[tuple[str, str], tuple[Rung, ...]] = {}
    outcomes = []
    records = [record for row, _, record in attempts if row.trusted] or [record for _, _, record in attempts]
    for record in records:
        for what, text in record.threat_model.items():
            knowledge.setdefault(what, {})[text] = None
    for data, row, record in attempts:
        one = _outcome(data, row, record)
        if one.member is not None and any(rung.step for rung in one.member.rungs):
            reaches.setdefault((record.evaluator, record.preset), one.member.rungs)
        outcomes.append(one)
    outcomes.sort(key=lambda one: (ORDER.index(one.state), one.row.method, one.row.data, one.row.id))
    return AttackRecord(
        name, kind, tuple(sorted({record.attack.source if record.attack else ClassifierMembership.source
                                  for record in records})),
        tuple((what, tuple(texts)) for what, texts in sorted(knowledge.items())), tuple(outcomes),
        tuple((evaluator, preset, rungs) for (evaluator, preset), rungs in sorted(reaches.items())),
    )  # fmt: skip


def _outcome(data: BoardRow, row: Row, record: Record) -> Attempted:
    panel = row.panel if record.kind == PAIRS else row.membership
    member = next((one for one in panel.members if one.evaluator == record.evaluator), None)
    certified = [record.evaluator] if member is not None and member.certified else []
    names = [name for name in FIGURES.get(record.kind, ()) if name in record.metrics]
    entries = tuple(entry([record], row.entries[name].column, certified) for name in names)
    return Attempted(data, record, member, outcome(record, panel), entries)
