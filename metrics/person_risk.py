"""Person risk: how surely an attack finds the person whom it finds most surely, and how that is spread over people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from bench.evidence import PairEvidence
from bench.seeds import derive
from bench.statistics.identification_risk import luckiest, risk_score
from bench.types import Column, Metric, NotApplicable, Score


@dataclass(frozen=True)
class PersonRisk(Metric[PairEvidence]):
    """The share of releases in which Eve's first guess finds the worst person, beyond luck."""

    name: ClassVar[str] = "person-risk"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Knolle et al. 2026, Nature; bounds: Clopper and Pearson 1934"
    column: ClassVar[Column] = Column(
        title="Worst person",
        meaning="The share of releases, each under a key of its own, in which Eve's first guess for one of a person's "
        "images is that person, beyond what naming the person so often gives by luck; for the person whom she finds "
        "most surely.",
        group="Privacy by patient: weakest figure",
        digits=3,
        chance="a value above 0, for the worst of many is the luckiest, and the more so the fewer keys there are",
        order=20,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """`risk_score` of the people whom first guesses found: distribution and groups as parts; p from `luckiest`.

        Raises:
            NotApplicable: The evidence does not say whom they found.
        """
        if evidence.people is None:
            raise NotApplicable("nobody looked whom first guesses found")
        score = risk_score(evidence.people, seed=derive(evidence.seed, "people"))
        return replace(score, p=luckiest(evidence.people))
