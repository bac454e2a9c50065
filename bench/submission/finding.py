"""What keeps a record from being handed in, or from a tier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "altered", "limited", "restricted", "path", "file", "unprotected", "mixed", "incomplete", "stale", "failed"
]
REFUSED: frozenset[Kind] = frozenset({"altered", "limited", "restricted", "path", "mixed"})
"""Those that no verifier overlooks; the others leave a record at its author's word."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Args:
        kind: In a word.
        name: The record's file, or its cell.
        reason: What is wrong, and what to do.
    """

    kind: Kind
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}: {self.reason}"


def told(findings: Sequence[Finding]) -> list[str]:
    """The findings in words, those of many records at once where they say the same."""
    alike: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        alike.setdefault((finding.kind, finding.reason), []).append(finding.name)
    return [
        f"{kind}: {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "") + f": {reason}"
        for (kind, reason), names in alike.items()
    ]
