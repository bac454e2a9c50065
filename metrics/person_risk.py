"""Person risk: the chance that an attack finds its easiest person."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from bench.evidence import PairEvidence
from bench.seeds import derive
from bench.statistics.identification_risk import luckiest, risk_score
from bench.types import Column, Metric, NotApplicable, Score


@dataclass(frozen=True)
class PersonRisk(Metric[PairEvidence]):
    """Share of releases in which the worst person is found, beyond luck.

    Only Eve's first guess counts.
    """

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
        """`risk_score` of the people in first guesses; p from `luckiest`.

        The distribution and the groups are parts.

        Raises:
            NotApplicable: The evidence does not say whom they found.
        """
        if evidence.people is None:
            raise NotApplicable("the evidence does not say whom first guesses found")
        score = risk_score(evidence.people, seed=derive(evidence.seed, "people"))
        return replace(score, p=luckiest(evidence.people))
