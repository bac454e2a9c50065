"""A row's statistics in shadow releases, with the row and without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch

from bench.statistics.classification_scores import auc

PRIOR = 8
"""Shadow releases that the variance over all rows counts for beside a row's own."""
ROUNDING = 1e-9


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
        found = []
        for row, held, weights in zip(statistic, inside, within, strict=True):
            counts = torch.stack((half - weights, half - 1 + weights))
            means = (sums - torch.stack((row * weights, row * (1 - weights)))) / counts
            ratio = cls(*_centred(means, common * (1 / half + 1 / (half - 1))), variance, 0.5).ratio(row)
            told = auc(ratio.cpu(), held.double().cpu())
            found.append(0.5 if told is None else told)  # None: no candidate in it, or none left out
        return cls(*_centred(sums / half, common * 2 / half), variance, sum(found) / len(found))

    def ratio(self, statistic: torch.Tensor) -> torch.Tensor:
        """Log ratio (n,) float64 of the statistic's likelihoods, in over out."""
        return (statistic - self.middle) * self.gap / self.variance


def _centred(means: torch.Tensor, error: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Middle and shrunk gap of means (2, n); `error` is sampling variance."""
    gap = means[0] - means[1]
    spread = max(float(gap.var(correction=0)) - error, 0.0)
    return means.mean(dim=0), gap.mean() + spread / (spread + error) * (gap - gap.mean())
