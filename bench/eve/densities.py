"""Densities: Gaussian kernels over released rows, and normals over shadow releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch

from bench.memory.rows import Rows, in_blocks, rows_at
from bench.statistics.classification_scores import auc

PAIRS = 2**22
"""Pairs of rows that are looked at together."""

SIDE = 2048
"""Rows at a time, on either side, where they are read where they are used."""

PRIOR = 8
"""Shadow releases that the variance over all rows counts for beside a row's own."""
ROUNDING = 1e-9


def log_density(rows: torch.Tensor, released: torch.Tensor, bandwidths: Sequence[float]) -> torch.Tensor:
    """Log mean of exp(-|x - y|^2 / (2 h^2)) over released y.

    Shape (n, p) float64, a row x and a bandwidth h each: log densities up to a constant for each bandwidth. Squared
    distances come from products in float64, which err by some 1e-16 of the squared lengths of the rows: far below the
    square of any bandwidth that makes sense.

    Args:
        rows, released: (n, d) and (m, d) float64, about a common centre, m at least 1.
        bandwidths: p positive numbers.
    """
    sums = rows.new_empty(len(rows), len(bandwidths))
    squares = released.square().sum(dim=1)
    for part in torch.split(torch.arange(len(rows), device=rows.device), max(1, PAIRS // len(released))):
        some = rows[part]
        apart = (some.square().sum(dim=1, keepdim=True) + squares - 2 * some @ released.T).clamp(min=0)
        for place, bandwidth in enumerate(bandwidths):
            sums[part, place] = torch.logsumexp(apart / (-2 * bandwidth**2), dim=1)
    return sums - torch.tensor(float(len(released)), dtype=sums.dtype).log()


def density_in_parts(
    rows: torch.Tensor, own: torch.Tensor, released: torch.Tensor, theirs: torch.Tensor, bandwidths: Sequence[float]
) -> torch.Tensor:
    """`bench.eve.densities.log_density` by parts; bit-equal for ordinary tensors.

    Args:
        rows, released: (n, d) and (m, d) float64, about a common centre.
        own, theirs: int64 indices of both, at least one of the released.
        bandwidths: p positive numbers.
    """
    rows, released = rows_at(rows, own), rows_at(released, theirs)
    if not isinstance(rows, Rows) and not isinstance(released, Rows):
        return log_density(rows, released, bandwidths)
    sums = rows.new_full((len(rows), len(bandwidths)), -torch.inf)
    for part, some in rows.blocks(_fitting(rows)) if isinstance(rows, Rows) else in_blocks(rows, SIDE):
        for _, block in in_blocks(released, SIDE):
            sums[part] = torch.logaddexp(sums[part], log_density(some, block, bandwidths) + math.log(len(block)))
    return sums - math.log(len(released))


def _fitting(rows: Rows) -> int:
    """Number of rows that fit beside each part of released rows."""
    return max(1, min(SIDE, rows.budget.whole // 8 // rows.wide))


@dataclass(frozen=True, eq=False)
class InOut:
    """Normal densities of each row's statistic, in and out, with one variance.

    Source: the parametric online attack of Carlini et al. 2022 (LiRA, section V, algorithm 1); its log ratio is
    (t - (in + out) / 2) (in - out) / variance. With few shadow releases they take one variance for all rows; here a
    row's own is mixed with that of all by the number of releases behind it. And what few releases say of a row's
    in - out is drawn towards its mean over rows, as far as sampling alone would spread it (James and Stein).

    Args:
        middle: (n,) float64, half way between in and out.
        gap: (n,) float64, in - out.
        variance: (n,) float64.
        auc: The AUC for rows in and out of shadow releases, each release judged by the others.
    """

    middle: torch.Tensor
    gap: torch.Tensor
    variance: torch.Tensor
    auc: float

    @classmethod
    def learn(cls, statistic: torch.Tensor, inside: torch.Tensor) -> Self:
        """Learn from statistics (s, n) float64 and memberships (s, n) bool.

        Every row must be in exactly half of the releases, at least two of them.
        """
        half, within = len(statistic) // 2, inside.to(statistic)
        if half < 2 or not bool((inside.sum(dim=0) * 2 == len(statistic)).all()):
            raise ValueError(f"every row must be in half of at least 4 releases, got {len(statistic)} releases")
        sums = torch.stack(((statistic * within).sum(dim=0), (statistic * (1 - within)).sum(dim=0)))
        own = (statistic - torch.where(inside, sums[0] / half, sums[1] / half)).square().sum(dim=0)
        common = float(own.mean()) / (len(statistic) - 2)
        if float(statistic.std(dim=0).amax()) <= ROUNDING * (1 + float(statistic.abs().amax())):  # it never changes
            nothing = torch.zeros_like(own)
            return cls(nothing, nothing, nothing + 1, 0.5)
        common += ROUNDING * float(statistic.var(dim=0).mean())  # some spread, if all is determined
        variance = (own + PRIOR * common) / (len(statistic) - 2 + PRIOR)
        areas = []
        for row, held, weights in zip(statistic, inside, within, strict=True):
            counts = torch.stack((half - weights, half - 1 + weights))
            means = (sums - torch.stack((row * weights, row * (1 - weights)))) / counts
            ratio = cls(*_centred(means, common * (1 / half + 1 / (half - 1))), variance, 0.5).ratio(row)
            area = auc(ratio.cpu(), held.double().cpu())
            areas.append(0.5 if area is None else area)  # None: no candidate in it, or none left out
        return cls(*_centred(sums / half, common * 2 / half), variance, sum(areas) / len(areas))

    def ratio(self, statistic: torch.Tensor) -> torch.Tensor:
        """Log ratio (n,) float64 of the statistic's likelihoods, in over out."""
        return (statistic - self.middle) * self.gap / self.variance


def _centred(means: torch.Tensor, error: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Middle and shrunk gap of means (2, n); `error` is sampling variance."""
    gap = means[0] - means[1]
    spread = max(float(gap.var(correction=0)) - error, 0.0)
    return means.mean(dim=0), gap.mean() + spread / (spread + error) * (gap - gap.mean())
