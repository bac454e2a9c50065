"""Max dispersion: the sum of all pairwise distances within the released set (CVAE paper)."""

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


def distance_sums(rows: Tensor, *, block: int = 1024) -> Tensor:
    """For each row (n, d), the sum of its distances to all rows, (n,) float64."""
    sums = torch.zeros(len(rows), dtype=torch.float64)
    slices = split_evenly(len(rows), block)
    for number, first in enumerate(slices):
        for second in slices[number:]:
            part = distances(rows[first], rows[second])
            sums[first] += part.sum(dim=1)
            if first != second:
                sums[second] += part.sum(dim=0)
    return sums


@dataclass(frozen=True)
class MaxDispersion(Metric[SetEvidence]):
    """Sum of all pairwise distances of the released rows, in standard deviations of the original set."""

    name: ClassVar[str] = "max-dispersion"
    unit: ClassVar[str] = "summed distance"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "CVAE paper, section on evaluation; standardised by the original set"

    def __call__(self, evidence: SetEvidence) -> Score:
        """The sum, with the original set's own sum and the mean distance a pair as parts.

        The interval bootstraps people, to first order: a row's weight moves the sum by its own distances.
        """
        original, released = standardise(evidence.original, evidence.released)
        seed = derive(evidence.seed, "dispersion")
        figure = _summed(distance_sums(released), evidence.released_subjects, seed)
        pairs = len(released) * (len(released) - 1) / 2
        mean = (
            Score(figure.value / pairs, _over(figure.low, pairs), _over(figure.high, pairs), figure.n)
            if pairs
            else None
        )
        parts = {"original": _summed(distance_sums(original), evidence.subjects, seed)}
        return Score(
            figure.value, figure.low, figure.high, figure.n,
            parts=parts | ({"mean-distance": mean} if mean else {}), note=figure.note,
        )  # fmt: skip


def _summed(sums: Tensor, subjects: Tensor | None, seed: int) -> Score:
    total = float(sums.sum() / 2)
    if total == 0:
        return Score(0.0, 0.0, 0.0, len(sums), note="all rows are the same")
    weights = draw_weights(subjects, len(sums), DRAWS, seed=seed).to(torch.float64)
    # To first order a bootstrap total moves twice as far as the mean of the rows' own sums.
    moved = (weights @ sums) / (weights.sum(dim=1) * sums.mean()) - 1
    low, high = torch.quantile(total * (1 + 2 * moved), LEVELS).tolist()
    return Score(total, low, high, len(sums), note="95 % first-order bootstrap over people")


def _over(value: float | None, pairs: float) -> float | None:
    return None if value is None else value / pairs
