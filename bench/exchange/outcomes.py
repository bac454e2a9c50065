"""Outcomes of an export or a merge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

Fate = Literal["copied", "present", "stays", "refused"]


@dataclass(frozen=True)
class Outcome:
    """The outcome for one record, artefact or plan.

    Args:
        kind: `record`, `plan`, or the artefact's kind.
        name: Its file or folder.
        fate: Copied; present before; stays where it is; or refused.
        reason: Why it stays or is refused; empty otherwise.
    """

    kind: str
    name: str
    fate: Fate
    reason: str = ""


@dataclass
class Outcomes:
    """All outcomes of a command.

    Args:
        all: In order.
        notes: Other remarks for the user.
    """

    all: list[Outcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, kind: str, name: str, fate: Fate, reason: str = "") -> None:
        """Add one."""
        self.all.append(Outcome(kind, name, fate, reason))

    def count(self, fate: Fate) -> int:
        """The number of outcomes with that fate."""
        return sum(outcome.fate == fate for outcome in self.all)

    def summary(self, fate: Fate) -> str:
        """The number of each kind, as `3 records, 2 schemes`."""
        counts = Counter(outcome.kind.removesuffix("s") for outcome in self.all if outcome.fate == fate)
        return ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in sorted(counts.items())) or "nothing"

    def reasons(self, fate: Fate) -> list[str]:
        """One line per reason: the first name and the number of others."""
        names: dict[str, list[str]] = {}
        for outcome in self.all:
            if outcome.fate == fate:
                names.setdefault(outcome.reason, []).append(outcome.name)
        return [
            f"{first}{f' and {len(others)} more' if others else ''}: {reason}"
            for reason, (first, *others) in names.items()
        ]
