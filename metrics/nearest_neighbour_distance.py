"""D(A, F): distance to the nearest original row (CVAE paper, equation 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import SetEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import ONE_PERSON, bootstrap_sums, bounds, units_of
from bench.statistics.nearest_rows import (
    VARYING,
    hardly_varying,
    nearest,
    standardise,
)
from bench.types import Column, Metric, Score

DRAWS = 1000


@dataclass(frozen=True)
class NearestNeighbourDistance(Metric[SetEvidence]):
    """Mean distance to the nearest original row, in original standard deviations."""

    name: ClassVar[str] = "nearest-neighbour-distance"
    unit: ClassVar[str] = "distance"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Di Salvo et al. 2024 (CVAE paper), equation 1: D(A, F); standardised by the original set"
    column: ClassVar[Column] = Column(
        title="Nearest-neighbour distance",
        meaning="The mean distance from a released row to the nearest original row, standardised in the same way: "
        "D(A, F) of the CVAE paper. 0 means that every released row is an original one.",
        group="Released set",
        order=15,
    )

    def __call__(self, evidence: SetEvidence) -> Score:
        """The mean over released rows; the interval bootstraps their people.

        The original rows are held fixed. If no one person stands behind a released row, its copies are drawn as one:
        centroids of k rows come k times. If columns of the original hardly vary (`VARYING`), the figure without them
        is a part.
        """
        score = self._mean(evidence, floor=0.0)
        if not hardly_varying(evidence.original):
            return score
        return replace(score, parts={"varying columns": self._mean(evidence, floor=VARYING)})

    def _mean(self, evidence: SetEvidence, *, floor: float) -> Score:
        original, released = standardise(evidence.original, evidence.released, floor=floor)
        each, drawn_together = nearest(released, original), evidence.released_subjects
        note = "95 % bootstrap over people"
        if drawn_together is None:
            drawn_together = torch.unique(evidence.released.flatten(1), dim=0, return_inverse=True)[1]
            note = "95 % bootstrap over distinct released rows"
        seed = derive(evidence.seed, "nearest-neighbour-distance")
        values = torch.stack((each, torch.ones_like(each)), dim=1)
        drawn, rows = bootstrap_sums(values, drawn_together, DRAWS, seed=seed).T
        low, high = bounds(float(each.mean()), drawn / rows, units_of(drawn_together, len(each)), least=0.0)
        if low is None:
            note = ONE_PERSON if evidence.released_subjects is not None else "no interval: all released rows are alike"
        return Score(float(each.mean()), low, high, len(each), note=note)
