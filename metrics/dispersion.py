"""Dispersion of released rows, and their distance to original ones (CVAE paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar, Literal

import torch

from bench.evidence import SetEvidence
from bench.pairs.sweep import split_evenly
from bench.statistics.nearest_rows import (
    BLOCK,
    FLOOR,
    VARYING,
    buffers_for,
    centred,
    hardly_varying,
    nearest,
    precisions,
    product_error,
    products,
    standardise,
    widened,
)
from bench.types import SIMILARITY, Column, Metric, Score

UNBOUNDED = (
    "no interval: other people would change the rows and the deviations that divide them, and under heavy tails a few "
    "people decide both; a bootstrap of people covered the truth between .2 and 1 of the time in simulations"
)
CHUNK = 264
"""Columns multiplied at once: the bound of the error grows with them."""
TOLERANCE = 1e-4
"""Of the summed distances of a block; see `distance_sums` for what float64 makes of it."""


def distance_sums(rows: torch.Tensor, *, block: int = BLOCK) -> torch.Tensor:
    """(n,) float64: each row's sum of distances to all rows (n, d).

    Rows are centred. A block is multiplied in float32 if its summed distances are then proven to err by at most
    `TOLERANCE` of their sum (added up in float32, which errs by 3e-5 at most), otherwise in float64. That needs no
    proof by block: a squared distance errs by at most E = 2 e (|a|^2 + |b|^2), a distance by at most the root of 2 E;
    about the mean the distances of a row sum to at least n |a|, so that the total errs by at most 4 sqrt(e) of itself,
    1e-6, however close some rows are. What is seen is far less: roundings are of both signs.
    """
    if len(rows) == 0 or (torch.equal(rows[0], rows[-1]) and bool((rows == rows[:1]).all())):
        return torch.zeros(len(rows), dtype=torch.float64)
    rows = rows.to(torch.float64)
    (near,), unit = centred([rows], rows.mean(dim=0))
    factors = cache(partial(_Factors.of, near, block=block))
    sums = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    slices = split_evenly(len(rows), block)
    for number, first in enumerate(slices):
        for second in slices[number:]:
            for dtype in precisions(rows.device):
                part = _distances(factors(dtype), first, second)
                across = part.sum(dim=1).to(torch.float64)
                allowed = TOLERANCE * float(across.sum())
                if dtype == torch.float64 or _error(factors(dtype), first, second, part, allowed) <= allowed:
                    break
            sums[first] += across
            if first != second:
                sums[second] += part.sum(dim=0).to(torch.float64)
    total: torch.Tensor = (sums * unit).cpu()
    return total


@dataclass(frozen=True, eq=False)
class _Factors:
    """Factors (-2 a, |a|^2, 1) and (b, 1, |b|^2) of squared distances."""

    left: torch.Tensor
    right: torch.Tensor
    squares: torch.Tensor
    buffers: tuple[torch.Tensor, torch.Tensor]

    @classmethod
    def of(cls, rows: torch.Tensor, dtype: torch.dtype, *, block: int) -> _Factors:
        squares = torch.linalg.vector_norm(rows, dim=1).square()
        left = widened(rows, torch.stack((squares, torch.ones_like(squares)), dim=1), dtype)
        right = widened(rows, torch.stack((torch.ones_like(squares), squares), dim=1), dtype)
        left[:, :-2] *= -2
        return cls(left, right, squares, buffers_for(block, left))


def _distances(factors: _Factors, first: slice, second: slice) -> torch.Tensor:
    """Distances of a block, in its buffer."""
    squared = products(factors.left[first], factors.right[second], factors.buffers, chunk=CHUNK)
    if first == second:
        squared.fill_diagonal_(0)
    return squared.clamp_(min=0).sqrt_()


def _error(factors: _Factors, first: slice, second: slice, distances: torch.Tensor, allowed: float) -> float:
    """A bound of the summed errors of a block's distances.

    It is a quick one if that is below `allowed`. With E the error of a square s, the root errs by at most E / (1.86
    sqrt(s)) if s >= 4 E, and by sqrt(5 E) at most otherwise: then the true square is below 5 E, and the root as
    computed below sqrt(4 E).
    """
    # The terms' sizes sum to 2 sum |a_i b_i| + |a|^2 + |b|^2, at most twice the squares.
    share = 2 * product_error(factors.left.shape[1], distances.dtype, chunk=CHUNK)
    a, b = (share * factors.squares[part] + FLOOR[str(distances.dtype)] for part in (first, second))
    most = float(a.amax() + b.amax())
    least = float(distances.amin())
    if least >= 2 * math.sqrt(most):
        quick = distances.numel() * most / (1.86 * least)
        if quick <= allowed:
            return quick
    inverse = distances.clamp(min=math.sqrt(most)).reciprocal_()
    far = float(inverse.sum(dim=1).to(a) @ a + inverse.sum(dim=0).to(b) @ b) / 1.86
    near = int((distances < 2 * math.sqrt(most)).sum()) - (len(distances) if first == second else 0)
    return far + near * math.sqrt(5 * most)


@dataclass(frozen=True)
class MaxDispersion(Metric[SetEvidence]):
    """Sum of pairwise distances of released rows, in original standard deviations."""

    name: ClassVar[str] = "max-dispersion"
    unit: ClassVar[str] = "summed distance"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Di Salvo et al. 2024 (CVAE paper), section on evaluation; standardised by the original set"
    column: ClassVar[Column] = Column(
        title="Max dispersion",
        meaning="The sum of all distances between released rows, standardised with the statistics of the original "
        "rows: how much variety is left. A release with much of it may still name everybody (Pilgram et al. 2025).",
        group=SIMILARITY,
        order=10,
    )

    def __call__(self, evidence: SetEvidence) -> Score:
        """The sum; parts: the original set's sum, the mean distance.

        If columns of the original hardly vary (`VARYING`), both sums without them are parts too.
        There is no interval (`UNBOUNDED`).
        """
        figure, own = self._sums(evidence, floor=0.0)
        pairs = len(evidence.released) * (len(evidence.released) - 1) / 2
        parts = {"original": own}
        if pairs:
            parts["mean-distance"] = Score(figure.value / pairs, None, None, figure.n, note=UNBOUNDED)
        if hardly_varying(evidence.original):
            parts["varying columns"], parts["original, varying columns"] = self._sums(evidence, floor=VARYING)
        return replace(figure, parts=parts)

    def _sums(self, evidence: SetEvidence, *, floor: float) -> tuple[Score, Score]:
        original, released = standardise(evidence.original, evidence.released, floor=floor)
        return _summed(distance_sums(released)), _summed(distance_sums(original))


def _summed(sums: torch.Tensor) -> Score:
    total = float(sums.sum() / 2)
    return Score(total, None, None, len(sums), note=UNBOUNDED if total else "all rows are the same")


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
        "D(A, F) of the CVAE paper. 0 means that every released row is an original one; no distance shows "
        "that people cannot be found (Pilgram et al. 2025, arXiv 2503.04980).",
        group=SIMILARITY,
        order=15,
    )

    def __call__(self, evidence: SetEvidence) -> Score:
        """The mean over released rows, without an interval (`UNBOUNDED`).

        If columns of the original hardly vary (`VARYING`), the figure without them is a part.
        """
        score = self._mean(evidence, floor=0.0)
        if not hardly_varying(evidence.original):
            return score
        return replace(score, parts={"varying columns": self._mean(evidence, floor=VARYING)})

    def _mean(self, evidence: SetEvidence, *, floor: float) -> Score:
        original, released = standardise(evidence.original, evidence.released, floor=floor)
        distances = nearest(released, original)
        return Score(float(distances.mean()), None, None, len(distances), note=UNBOUNDED)
