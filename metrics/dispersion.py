"""Max dispersion: the sum of all pairwise distances within the released set (CVAE paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar, Literal

import torch
from torch import Tensor

from bench.evidence import SetEvidence
from bench.seeds import derive
from bench.types import Metric, Score
from metrics.distances import (
    BLOCK,
    FLOOR,
    VARYING,
    buffers_for,
    centred,
    hardly_varying,
    precisions,
    product_error,
    products,
    standardise,
    widened,
)
from metrics.pairs import split_evenly
from metrics.resampling import LEVELS, draw_weights

DRAWS = 1000
CHUNK = 512
"""Columns multiplied at once: the bound of the error grows with them."""
TOLERANCE = 1e-4
"""Of the summed distances of a block; see `distance_sums` for what float64 makes of it."""


def distance_sums(rows: Tensor, *, block: int = BLOCK) -> Tensor:
    """For each row (n, d), the sum of its distances to all rows, (n,) float64.

    Rows are centred. A block is multiplied in float32 where its summed distances are then proven to err by at most
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
            for dtype in precisions():
                part, error = _distances(factors(dtype), first, second)
                across = part.sum(dim=1).to(torch.float64)
                if error <= TOLERANCE * float(across.sum()):
                    break
            sums[first] += across
            if first != second:
                sums[second] += part.sum(dim=0).to(torch.float64)
    total: Tensor = (sums * unit).cpu()
    return total


@dataclass(frozen=True, eq=False)
class _Factors:
    """Rows (n, d) as (n, d + 2) factors whose products are squared distances: (-2 a, |a|^2, 1) and (b, 1, |b|^2)."""

    left: Tensor
    right: Tensor
    squares: Tensor
    buffers: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, rows: Tensor, dtype: torch.dtype, *, block: int) -> _Factors:
        squares = torch.linalg.vector_norm(rows, dim=1).square()
        left = widened(rows, torch.stack((squares, torch.ones_like(squares)), dim=1), dtype)
        right = widened(rows, torch.stack((torch.ones_like(squares), squares), dim=1), dtype)
        left[:, :-2] *= -2
        return cls(left, right, squares, buffers_for(block, left))


def _distances(factors: _Factors, first: slice, second: slice) -> tuple[Tensor, float]:
    """Distances of a block, and a bound of the sum of their errors.

    With E the most that a squared distance s (as computed) errs in the block, the root errs by at most E / sqrt(s), and
    by sqrt(2 E) where s < E. The smallest s settles most blocks; otherwise the bound is summed over the block.
    """
    squared = products(factors.left[first], factors.right[second], factors.buffers, chunk=CHUNK)
    # The terms' sizes sum to 2 sum |a_i b_i| + |a|^2 + |b|^2, at most twice the squares.
    share = 2 * product_error(factors.left.shape[1], squared.dtype, chunk=CHUNK)
    if first == second:
        squared.fill_diagonal_(torch.inf)
    least = float(squared.amin())
    most = share * float(factors.squares[first].amax() + factors.squares[second].amax()) + FLOOR[squared.dtype]
    if least > 4 * most:
        total = squared.numel() * most / math.sqrt(least)
    else:
        total = math.sqrt(2) * most * float(squared.clamp(min=most).rsqrt_().sum(dtype=torch.float64))
    if first == second:
        squared.fill_diagonal_(0)
    return squared.clamp_(min=0).sqrt_() if least < 0 else squared.sqrt_(), total


@dataclass(frozen=True)
class MaxDispersion(Metric[SetEvidence]):
    """Sum of all pairwise distances of the released rows, in standard deviations of the original set."""

    name: ClassVar[str] = "max-dispersion"
    unit: ClassVar[str] = "summed distance"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "CVAE paper, section on evaluation; standardised by the original set"

    def __call__(self, evidence: SetEvidence) -> Score:
        """The sum, with the original set's own sum and the mean distance a pair as parts.

        Where columns of the original hardly vary (`VARYING`), both sums without them are parts too.
        The interval bootstraps people, to first order: a row's weight moves the sum by its own distances.
        """
        figure, own = self._sums(evidence, floor=0.0)
        pairs = len(evidence.released) * (len(evidence.released) - 1) / 2
        parts = {"original": own}
        if pairs:
            low, high = (None if value is None else value / pairs for value in (figure.low, figure.high))
            parts["mean-distance"] = Score(figure.value / pairs, low, high, figure.n)
        if hardly_varying(evidence.original):
            parts["varying columns"], parts["original, varying columns"] = self._sums(evidence, floor=VARYING)
        return replace(figure, parts=parts)

    def _sums(self, evidence: SetEvidence, *, floor: float) -> tuple[Score, Score]:
        original, released = standardise(evidence.original, evidence.released, floor=floor)
        seed = derive(evidence.seed, "dispersion")
        figure = _summed(distance_sums(released), evidence.released_subjects, seed)
        return figure, _summed(distance_sums(original), evidence.subjects, seed)


def _summed(sums: Tensor, subjects: Tensor | None, seed: int) -> Score:
    total = float(sums.sum() / 2)
    if total == 0:
        return Score(0.0, 0.0, 0.0, len(sums), note="all rows are the same")
    weights = draw_weights(subjects, len(sums), DRAWS, seed=seed).to(torch.float64)
    # To first order a bootstrap total moves twice as far as the mean of the rows' own sums.
    moved = (weights @ sums) / (weights.sum(dim=1) * sums.mean()) - 1
    low, high = torch.quantile(total * (1 + 2 * moved), LEVELS).tolist()
    return Score(total, low, high, len(sums), note="95 % first-order bootstrap over people")
