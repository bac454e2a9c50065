"""What a push, a pull or a merge came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

Fate = Literal["moved", "there", "stays", "refused"]


@dataclass(frozen=True)
class Outcome:
    """What became of a record or an artefact.

    Args:
        kind: `record`, or the artefact's kind.
        name: Its file, or its folder.
        fate: Moved; there before; left where it is; or refused, or not arrived.
        reason: Why it stays or is refused; empty for the others.
        size: Bytes that were moved.
    """

    kind: str
    name: str
    fate: Fate
    reason: str = ""
    size: int = 0


@dataclass
class Tally:
    """All outcomes of a command, in words.

    Args:
        counts: By fate and kind.
        size: Bytes that were moved.
        reasons: By fate and reason, whom it kept.
        notes: What else should be known.
    """

    counts: Counter[tuple[Fate, str]] = field(default_factory=Counter)
    size: int = 0
    reasons: dict[tuple[Fate, str], list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count one more."""
        self.counts[outcome.fate, outcome.kind] += 1
        self.size += outcome.size
        if outcome.reason:
            self.reasons.setdefault((outcome.fate, outcome.reason), []).append(outcome.name)

    def take(self, kind: str, name: str, done: Outcome | Exception) -> None:
        """Count what came of an attempt: its outcome, or the error that it did not arrive by."""
        self.add(done if isinstance(done, Outcome) else Outcome(kind, name, "refused", str(done)))

    def of(self, fate: Fate) -> int:
        """How many had that fate."""
        return sum(count for (found, _), count in self.counts.items() if found == fate)

    def told(self, fate: Fate) -> str:
        """How many of each kind had that fate, as `3 records, 2 schemes`."""
        found = {kind: count for (each, kind), count in sorted(self.counts.items()) if each == fate}
        return ", ".join(f"{count} {_counted(kind, count)}" for kind, count in found.items()) or "nothing"

    def why(self, fate: Fate) -> list[str]:
        """A line a reason, with the names that it kept."""
        return [
            f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {reason}"
            for (found, reason), names in self.reasons.items()
            if found == fate
        ]


def _counted(kind: str, count: int) -> str:
    if kind == "record":
        return "record" if count == 1 else "records"
    return kind.removesuffix("s") if count == 1 else kind
