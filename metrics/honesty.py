"""Honesty: broken promises of a method, and undeclared pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from bench.evidence import HonestyEvidence
from bench.types import Column, Metric, Score


@dataclass(frozen=True)
class BrokenPromises(Metric[HonestyEvidence]):
    """Broken promises of a method on links, labels and repeated keys."""

    name: ClassVar[str] = "broken-promises"
    unit: ClassVar[str] = "promises"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "this project: `bench.leak_search`"
    column: ClassVar[Column] = Column(
        title="Broken promises",
        meaning="On how many points the method does otherwise than it says: rows that show people to whom no link "
        "leads, rows hidden in labels, links withheld without a reason, a key that does otherwise when used again. "
        "Privacy figures of a method that breaks one are not rated.",
        group="Honesty",
        digits=0,
        order=10,
    )

    def __call__(self, evidence: HonestyEvidence) -> Score:
        """The number of broken promises; parts are 1 if broken. No interval."""
        parts = {
            name: Score(float(promise.broken), None, None, evidence.n, p=promise.p, note=promise.said)
            for name, promise in evidence.promises.items()
        }
        broken = [name for name, promise in evidence.promises.items() if promise.broken]
        return Score(
            float(len(broken)), None, None, evidence.n, parts=parts,
            note=f"of {len(parts)} that were looked into: {', '.join(broken) or 'all kept'}; counted",
        )  # fmt: skip


@dataclass(frozen=True)
class UndeclaredPairs(Metric[HonestyEvidence]):
    """Share of people (or rows) found in rows declared without them."""

    name: ClassVar[str] = "undeclared-pairs"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "this project: `bench.leak_search.search`"
    column: ClassVar[Column] = Column(
        title="Undeclared pairs",
        meaning="The share of people whom the judge, searching by itself, found in released rows to which no link of "
        "theirs leads, beyond those that chance finds; 0 where it found no more than chance.",
        group="Honesty",
        digits=2,
        chance="0",
        order=20,
    )
    on_request: ClassVar[bool] = False

    def __call__(self, evidence: HonestyEvidence) -> Score:
        """The share; p of the strongest search allows for all searches."""
        note = (
            "of the strongest search; p is exact and allows for all searches; no interval: a bound would need a model"
        )
        return Score(evidence.share, None, None, evidence.n, null=0.0, p=evidence.p, note=note)
