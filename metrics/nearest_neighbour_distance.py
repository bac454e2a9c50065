"""D(A, F): how far the original rows are from their nearest released row (CVAE paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from bench.evidence import SetEvidence
from bench.seeds import derive
from bench.types import Metric, Score
from metrics.distances import distances, standardise
from metrics.pairs import split_evenly
from metrics.resampling import LEVELS, draw_weights

DRAWS = 1000


def nearest(a: Tensor, b: Tensor, *, block: int = 1024) -> Tensor:
    """Distance of each row of a (n, d) to the nearest row of b (m, d), (n,) float64."""
    result = torch.empty(len(a), dtype=torch.float64)
    for rows in split_evenly(len(a), block):
        parts = [distances(a[rows], b[cols]).amin(dim=1) for cols in split_evenly(len(b), block)]
        result[rows] = torch.stack(parts).amin(dim=0)
    return result


@dataclass(frozen=True)
class NearestNeighbourDistance(Metric[SetEvidence]):
    """Mean distance of an original row to the nearest released row, in standard deviations of the original set."""

    name: ClassVar[str] = "nearest-neighbour-distance"
    unit: ClassVar[str] = "distance"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "CVAE paper, D(A, F); standardised by the original set"

    def __call__(self, evidence: SetEvidence) -> Score:
        """The mean over the original rows; the interval bootstraps the people behind them, the release held fixed."""
        each = nearest(*standardise(evidence.original, evidence.released))
        seed = derive(evidence.seed, "nearest-neighbour-distance")
        weights = draw_weights(evidence.subjects, len(each), DRAWS, seed=seed).to(torch.float64)
        low, high = torch.quantile((weights @ each) / weights.sum(dim=1), LEVELS).tolist()
        return Score(float(each.mean()), low, high, len(each), note="95 % bootstrap over people")
