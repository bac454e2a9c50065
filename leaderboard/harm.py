"""What one attack does to a method: breaks it, dents it, tells its members, or none of these."""

from __future__ import annotations

from bench.results.records import Record
from leaderboard.controls import BESIDE, CONTROLLED
from leaderboard.entries import beats_chance, of_tries
from leaderboard.reach import MEMBERSHIP, PAIRS, state, step

TELLING = (*CONTROLLED[MEMBERSHIP], *BESIDE[MEMBERSHIP])  # the worst member's figure has no probability


def outcome(record: Record, tries: int) -> str:
    """How a method stands after one attack of a panel with so many figures, in the words of verdicts.

    The rule is the panel's own: no attack is said to harm a method more than the method's verdict says.
    """
    if record.status != "ok":
        return record.status.replace("-", " ")
    if record.kind != PAIRS:
        return "members told" if any(tells(record, tries)) else "members not told"
    return "broken" if breaks(record) else "dented" if dents(record, tries) else "not broken"


def breaks(record: Record) -> bool:
    """Whether an attack on pairs breaks the method, as `leaderboard.reach.state` has it."""
    made = step(record)
    return made is not None and state(made) == "broken"


def dents(record: Record, tries: int) -> bool:
    """Whether any figure of an attack on pairs beats chance, in so many tries."""
    return any(beats_chance(of_tries(tries, score)) for score in record.scores.values())


def tells(record: Record, tries: int) -> tuple[bool, bool]:
    """Whether an attack tells members from others better than chance, and whether it does of a few members."""
    auc, tpr = (record.scores.get(name) for name in TELLING)
    beats = [score is not None and beats_chance(of_tries(tries, score)) for score in (auc, tpr)]
    return beats[0], beats[1]


def strength(record: Record, tries: int) -> tuple[bool, bool, float, float]:
    """What breaks comes first, then what beats chance in so many tries.

    Attacks that read labels see fewer rows, so that chance needs fewer guesses.
    """
    guesses, auc = record.scores["guesswork"], record.scores.get("reid-auc")
    beats = beats_chance(of_tries(tries, guesses))
    return not breaks(record), not beats, guesses.value, -auc.value if auc else 0.0
