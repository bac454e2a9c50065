"""Anonymity set: the number of raw rows that share a released form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import AnonymityEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import ONE_PERSON, bootstrap_sums, bounds, units_of
from bench.types import Column, Metric, Score

DRAWS = 1000


@dataclass(frozen=True)
class AnonymitySet(Metric[AnonymityEvidence]):
    """Rows among which one still hides after two releases.

    A guess among them is right once in so many times. That is 1 / mean(1 / size), the harmonic mean of the sizes: small
    sets weigh as much as they give away.
    """

    name: ClassVar[str] = "anonymity-set"
    unit: ClassVar[str] = "rows"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Sweeney 2002 (k-anonymity); two releases: Ganta et al. 2008 (composition attacks)"
    column: ClassVar[Column] = Column(
        title="Anonymity set",
        meaning="Among how many images each one still hides after the owner has released twice, with some people "
        "gone and others come: images that share their released form both times.",
        group="Released set",
        order=25,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: AnonymityEvidence) -> Score:
        """The figure after two releases; parts: one release and two releases."""
        sizes = {"one release": evidence.single, "two releases": evidence.intersected}
        parts = {
            name: _score(of, evidence.subjects, derive(evidence.seed, "anonymity set")) for name, of in sizes.items()
        }
        return replace(parts["two releases"], parts=parts)


def _score(sizes: torch.Tensor, subjects: torch.Tensor | None, seed: int) -> Score:
    """The harmonic mean of sizes (n,); mean and minimum as parts."""
    n = len(sizes)
    values = torch.stack((torch.ones_like(sizes), sizes, sizes.double().reciprocal()), dim=1)
    rows, total, chances = bootstrap_sums(values, subjects, DRAWS, seed=seed).T
    value, mean, people = n / float(values[:, 2].sum()), float(sizes.double().mean()), units_of(subjects, n)
    low, high = bounds(value, rows / chances, people, least=1.0, most=n)
    mean_low, mean_high = bounds(mean, total / rows, people, least=1.0, most=n)
    drawn = ONE_PERSON if low is None else "95 % bootstrap over people"
    parts = {
        "mean": Score(mean, mean_low, mean_high, n, note=drawn),
        "minimum": Score(float(sizes.min()), None, None, n, note="the smallest set there is, counted"),
    }
    alone = float((sizes == 1).double().mean())
    return Score(
        value, low, high, n, parts=parts,
        note=f"{drawn}; {100 * alone:.3g} % of the rows are alone",
    )  # fmt: skip
