"""Person risk: how surely an attack finds its easiest person or member."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import MembershipEvidence, PairEvidence
from bench.evidence import PersonRisk as Recognition
from bench.seeds import derive
from bench.statistics.identification_risk import (
    counted_luck,
    found_score,
    luckiest,
    people_of,
    risk_score,
)
from bench.types import Column, Metric, NotApplicable, Score

ONE_IN = 100
"""The inverse of the share of other people who may be taken for members."""


@dataclass(frozen=True)
class PersonRisk(Metric[PairEvidence]):
    """Share of releases whose first guess finds the worst person, beyond luck."""

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

        Raises:
            NotApplicable: The evidence does not say whom they found, or there are too few keys.
        """
        people = _first_guessed(evidence)
        return replace(risk_score(people, seed=derive(evidence.seed, "people")), p=luckiest(people))


@dataclass(frozen=True)
class PeopleFound(Metric[PairEvidence]):
    """Share of people whom first guesses find; parts: median person, groups."""

    name: ClassVar[str] = "people-found"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Knolle et al. 2026, Nature"
    column: ClassVar[Column] = Column(
        title="People found",
        meaning="The share of people whom Eve's first guess for one of their images names, the mean over keys; the "
        "typical (median) person and groups of people stand beside it. Ties are averaged.",
        group="Privacy by patient: weakest figure",
        digits=3,
        chance="1/n for n people with one image each",
        order=15,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """`found_score` of the people in first guesses.

        With one image a person it equals top-1.

        Raises:
            NotApplicable: The evidence does not say whom they found.
        """
        people = _first_guessed(evidence)
        return found_score(people, seed=derive(evidence.seed, "people"), trainings=evidence.trainings)


def _first_guessed(evidence: PairEvidence) -> Recognition:
    if evidence.people is None:
        raise NotApplicable("the evidence does not say whom first guesses found")
    return evidence.people


@dataclass(frozen=True)
class MemberRisk(Metric[MembershipEvidence]):
    """Share of releases with the worst member recognised, beyond luck."""

    name: ClassVar[str] = "member-risk"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Knolle et al. 2026, Nature; Carlini et al. 2022, section IV"
    column: ClassVar[Column] = Column(
        title="Worst member",
        meaning="The share of releases made from a person's images in which Eve says so, where she takes one in a "
        "hundred other people for such a person, beyond how often she says it of the same person wrongly; for the "
        "person whom she tells most surely.",
        group="Membership: weakest figure over the attacks that count",
        digits=3,
        chance="a value above 0, for the worst of many is the luckiest, and the more so the fewer keys there are",
        order=15,
    )

    def __call__(self, evidence: MembershipEvidence) -> Score:
        """`risk_score` of recognised members, without p.

        The few releases without a person do not tell how often the person is taken for a member all the same.

        Raises:
            NotApplicable: There are no members, no others, or too few keys.
        """
        return risk_score(told_members(evidence), seed=derive(evidence.seed, "people"))


@dataclass(frozen=True)
class MembersFound(Metric[MembershipEvidence]):
    """Share of members recognised; parts: median member, groups."""

    name: ClassVar[str] = "members-found"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Carlini et al. 2022, section IV"
    column: ClassVar[Column] = Column(
        title="Members found",
        meaning="The share of people in the release whom Eve recognises as such, where she takes one in a hundred "
        "other people for such a person, the mean over keys; the typical (median) member and groups of people stand "
        "beside it.",
        group="Membership: weakest figure over the attacks that count",
        digits=3,
        chance="about 0.01",
        order=14,
    )

    def __call__(self, evidence: MembershipEvidence) -> Score:
        """`found_score` of recognised members.

        Raises:
            NotApplicable: There are no members, or no others.
        """
        return found_score(told_members(evidence), seed=derive(evidence.seed, "people"))


def told_members(evidence: MembershipEvidence) -> Recognition:
    """Members whose highest score exceeds 99 % of other people's, by key.

    One in 100 of the other people may score higher. A person's luck is the share of releases without the person in
    which the attack says so all the same. One more release is counted, at the rate of random scores for a person with
    as many rows: the highest of many scores is high.
    """
    people = people_of(evidence)
    above = torch.stack([
        _above(_highest(scores, people.codes), inside)
        for scores, inside in zip(evidence.scores, people.members, strict=True)
    ])  # fmt: skip
    inside = people.members
    others = (~inside).sum(dim=1, keepdim=True).double()
    usual = by_luck(torch.bincount(people.codes), float((((others / ONE_IN).floor() + 1) / (others + 1)).mean()))
    wrong, out = (above & ~inside).sum(dim=0), (~inside).sum(dim=0)
    ever = inside.any(dim=0)
    groups = {name: {group: of[ever] for group, of in members.items()} for name, members in evidence.groups.items()}
    luck = counted_luck(wrong.double(), out, usual).expand(inside.shape)[:, ever]
    return Recognition(
        (above & inside)[:, ever].double(), luck, usual[ever], groups, inside[:, ever], (wrong[ever], out[ever])
    )


def by_luck(rows: torch.Tensor, mean: float) -> torch.Tensor:
    """(people,) float64: chances that the highest random score passes a bar.

    The bar is such that a share `mean` of all people passes.

    >>> [round(chance, 3) for chance in by_luck(torch.tensor([1, 1, 1, 10]), 0.01).tolist()]
    [0.003, 0.003, 0.003, 0.031]
    """
    below, above = -745.0, 0.0  # of the logarithm of the share of scores under the bar
    for _ in range(200):
        middle = (below + above) / 2
        passing = -torch.expm1(middle * rows.double())
        below, above = (middle, above) if float(passing.mean()) > mean else (below, middle)
    return -torch.expm1(above * rows.double())


def _highest(scores: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """(people,) each person's highest score."""
    highest = torch.full((int(codes.max()) + 1,), -torch.inf, dtype=torch.float64)
    return highest.scatter_reduce_(0, codes, scores, "amax")


def _above(highest: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
    """(people,) bool: highest scores above those of 99 % of others."""
    others = highest[~inside].sort(descending=True).values
    return highest > others[len(others) // ONE_IN]
