"""Undeclared pairs: people found in released rows without a link to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from bench.evidence import HonestyEvidence
from bench.types import Column, Metric, Score


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
