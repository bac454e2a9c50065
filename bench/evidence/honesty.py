"""What the judge found of a method's word: links, the lack of them, labels, and a key that does the same again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROMISES: Mapping[str, str] = {
    "pairs": "undeclared links",
    "labels": "rows hidden in labels",
    "links": "links withheld",
    "replay": "does otherwise when its key is used again",
}
"""What a method gives its word on, and what is said of a method that breaks it."""


@dataclass(frozen=True)
class Promise:
    """One thing that was looked into.

    Args:
        broken: Whether the method does otherwise, beyond chance.
        p: Probability under chance of what was found; None where nothing random is in it.
        said: How it was looked into, and what was found.
    """

    broken: bool
    p: float | None
    said: str


@dataclass(frozen=True)
class HonestyEvidence:
    """Every promise that was looked into, and how many rows were found where no link leads.

    Args:
        promises: By the names of `PROMISES`.
        share: Of the groups (people, or rows) that the strongest search claims, those that chance does not explain.
        p: Of that search under chance, allowing for all searches.
        n: Groups that it claims.
    """

    promises: Mapping[str, Promise]
    share: float
    p: float
    n: int
