"""An attack's controls, its reach, and its outcome on every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.results.records import Record
from leaderboard.entries import Entry, entry
from leaderboard.lines import Line
from leaderboard.panel import Member, outcome
from leaderboard.reach import MEMBERSHIP, PAIRS, Rung

FIGURES: Mapping[str, tuple[str, ...]] = {
    PAIRS: ("guesswork", "reid-auc"),
    MEMBERSHIP: ("membership-auc", "membership-tpr"),
}
ORDER = ("broken", "members told", "dented", "not broken", "members not told", "not applicable", "failed", "timed out")


@dataclass(frozen=True)
class Outcome:
    """One attack on one row.

    Args:
        line: The row.
        record: The attack's record.
        member: What the row's panel says of the attack; None where no panel judges its kind.
        state: How the method stands after it.
        entries: Its figures.
    """

    line: Line
    record: Record
    member: Member | None
    state: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class AttackRecord:
    """All that is known of an attack.

    Args:
        name, kind: Which.
        sources: Papers.
        knowledge: What Eve knows, in the words of its records: what, and every text that was given for it.
        outcomes: On every row, what it breaks first.
        reaches: By parameters and preset: how it fares on the encoders of the ladder.
    """

    name: str
    kind: str
    sources: tuple[str, ...]
    knowledge: tuple[tuple[str, tuple[str, ...]], ...]
    outcomes: tuple[Outcome, ...]
    reaches: tuple[tuple[str, str, tuple[Rung, ...]], ...]

    @property
    def broken(self) -> tuple[str, ...]:
        """Methods that it breaks, or whose members it tells, when certified."""
        return self._methods("broken", "members told")

    @property
    def dented(self) -> tuple[str, ...]:
        """Methods that it dents when certified, and breaks nowhere."""
        return tuple(name for name in self._methods("dented") if name not in self.broken)

    @property
    def reached(self) -> tuple[int, int]:
        """Number of encoders broken, and number tried."""
        rungs = [rung for _, _, some in self.reaches for rung in some]
        broken = {rung.method for rung in rungs if rung.state == "broken"}
        return len(broken), len({rung.method for rung in rungs if rung.tried})

    def _methods(self, *states: str) -> tuple[str, ...]:
        told = [each for each in self.outcomes if each.line.row.vouched and not each.line.reference]
        counted = [each for each in told if each.member is not None and each.member.certified]
        found = {each.line.row.method for each in counted if each.state in states}
        return tuple(sorted(found))


def attack_record(kind: str, name: str, tried: Sequence[tuple[Line, Record]]) -> AttackRecord:
    """The records of one attack, summed up.

    Args:
        kind, name: Which.
        tried: Its records with the rows that they are of.
    """
    knowledge: dict[str, dict[str, None]] = {}
    reaches: dict[tuple[str, str], tuple[Rung, ...]] = {}
    outcomes = []
    describing = [record for line, record in tried if line.row.vouched] or [record for _, record in tried]
    for record in describing:
        for what, text in record.threat_model.items():
            knowledge.setdefault(what, {})[text] = None
    for line, record in tried:
        made = _outcome(line, record)
        if made.member is not None and any(rung.step for rung in made.member.rungs):
            reaches.setdefault((record.evaluator, record.preset), made.member.rungs)
        outcomes.append(made)
    outcomes.sort(key=lambda one: (ORDER.index(one.state), one.line.row.label, one.line.data, one.line.id))
    return AttackRecord(
        name, kind, tuple(sorted({record.attack.source for record in describing if record.attack})),
        tuple((what, tuple(texts)) for what, texts in sorted(knowledge.items())), tuple(outcomes),
        tuple((evaluator, preset, rungs) for (evaluator, preset), rungs in sorted(reaches.items())),
    )  # fmt: skip


def _outcome(line: Line, record: Record) -> Outcome:
    judging = line.row.panel if record.kind == PAIRS else line.row.membership
    member = next((each for each in judging.members if each.evaluator == record.evaluator), None)
    counts = [record.evaluator] if member is not None and member.certified else []
    named = [name for name in FIGURES.get(record.kind, ()) if name in record.metrics]
    shown = tuple(entry([record], line.row.entries[name].column, counts) for name in named)
    return Outcome(line, record, member, outcome(record, judging.tries), shown)
