"""The controls of an attack: whether it did on reference methods what it must, on the same data, preset and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal

from bench.results.records import Record, ScoreRecord
from bench.statistics.confidence_intervals import RARE
from bench.types import Role
from bench.workbench.choice import same_rows
from leaderboard.entries import beats_chance, number, of_tries
from leaderboard.reach import MEMBERSHIP, PAIRS

FOUND_AUC, FOUND_GUESSES = 0.99, 1.5
CONTROLLED: Mapping[str, tuple[str, ...]] = {PAIRS: ("guesswork", "reid-auc"), MEMBERSHIP: ("membership-auc",)}
"""The metrics that a control of each kind needs."""
BESIDE: Mapping[str, tuple[str, ...]] = {PAIRS: ("top-1",), MEMBERSHIP: ("membership-tpr",)}


@dataclass(frozen=True)
class Control:
    """One attack on one reference method.

    Args:
        role: What the method is there for.
        state: Whether the attack did there what it must.
        text: The figures.
        theirs: Whether they are the word of whoever handed in the row, and nobody measured them again.
    """

    role: Role
    state: Literal["holds", "fails", "not run"]
    text: str
    theirs: bool = False


def control(record: Record, role: Role, pool: Sequence[Record], theirs: Set[str] = frozenset()) -> Control:
    """How an attack's record fared on the reference method of a role, looked for among `pool`.

    `theirs` are digests of records that are their author's word: they count where there is no other with figures.
    """
    near = (other for other in pool if other.method.role == role and other.kind == record.kind)
    fitting = [other for other in near if _comparable(record, other)]

    def place(other: Record) -> tuple[bool, bool, bool]:
        return other.status != "ok", other.digest in theirs, other.device != record.device

    found = min(fitting, key=place, default=None)
    mine = found is not None and found.digest in theirs
    needed = CONTROLLED[record.kind]
    looked_at = (*needed, *BESIDE[record.kind])
    scores = {} if found is None else {name: found.scores[name] for name in looked_at if name in found.scores}
    if found is None or not {*needed} <= scores.keys():
        asked = {**record.metrics, **({} if found is None else found.metrics)}
        without = f"without {' or '.join(asked[name].title if name in asked else name for name in needed)}"
        why = "never ran" if found is None else (found.reason or without)
        return Control(role, "not run" if found is None or found.status == "ok" else "fails", why, mine)
    if role == "hides nothing":
        holds = scores["guesswork"].value <= FOUND_GUESSES and scores["reid-auc"].value >= FOUND_AUC
    elif role == "remembers its rows":
        holds = beats_chance(scores["membership-auc"])
    else:
        holds = all(_at_chance(of_tries(len(scores), score)) for score in scores.values())
    return Control(role, "holds" if holds else "fails", ", ".join(figure_text(found, name) for name in needed), mine)


def figure_text(record: Record, metric: str) -> str:
    """A figure under its title, as the record's metric is shown."""
    shown = record.metrics[metric]
    return f"{shown.title} {number(record.scores[metric].value, shown.digits)}"


def _at_chance(score: ScoreRecord) -> bool:
    """Whether chance makes a figure like it at least once in a thousand times (or, unknown, inside its interval)."""
    if score.p is not None:
        return score.p >= RARE
    return score.null_low is None or score.null_high is None or score.null_low <= score.value <= score.null_high


def _comparable(a: Record, b: Record) -> bool:
    """Whether two records hold the same attack on the same data at the same size."""
    if a.attack is None or b.attack is None or a.dataset is None or b.dataset is None:
        return False
    if a.attack.name != b.attack.name:
        return False
    same_attack = (a.kind, a.attack.name, a.attack.parameters, a.attack.code) == (
        b.kind, b.attack.name, b.attack.parameters, b.attack.code,
    )  # fmt: skip
    return same_attack and same_rows(a.choice, b.choice, a.dataset, b.dataset)
