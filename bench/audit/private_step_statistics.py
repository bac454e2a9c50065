"""Log odds of canaries' coins by a private training's sums.

Nasr et al. 2023, Tight auditing of differentially private machine learning: the noisy sum of a step, along a canary's
gradient, is noise, or noise and the clip. The ratio of both likelihoods is the best test of a sampled Gaussian step.
Gradients of many canaries overlap: all but one are noise for that one, of the mean and variance that the steps before
leave for them (assumed-density filtering: Minka 2001). The noise is read off what no canary explains, so that a method
with less noise than stated is seen with its own.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import torch

from bench.rows.row_sets import joined
from bench.types import Dataset, Key, PrivateStep

Reading: TypeAlias = "torch.Tensor"  # (s, k) float64, s numbers of each of k canaries
RATES = (1.0, 1 / 4, 1 / 16)  # sampling rates that are tried beside a claim's
SURE = 30.0  # log odds of a row that is always included
TINY = 1e-9


def rates(claimed: float | None) -> tuple[float, ...]:
    """Sampling rates that are tried, the claimed one first."""
    return RATES if claimed is None else (claimed, *(rate for rate in RATES if rate != claimed))


def statistics_of_steps(
    key: Key, rows: Dataset, first: Dataset, second: Dataset | None, *, claimed: float | None = None
) -> Reading:
    """(s, k) float64: log odds of coins, by each sampling rate.

    `second` are the rows that take the place of the first ones. If None, coins include rows, and the last row is always
    included.
    """
    probes, tried = first if second is None else joined(first, second), rates(claimed)
    odds = torch.zeros(len(tried), len(first), dtype=torch.float64)
    if second is None:
        odds[:, -1] = SURE
    rest, free = 0.0, 0

    def see(step: PrivateStep) -> None:
        nonlocal rest, free
        clipped = step.gradients.float()
        clipped = clipped / clipped.norm(dim=1, keepdim=True).clamp_min(step.clip)
        if second is not None:  # half the sum, and half the difference, of either pair
            clipped = torch.cat((clipped[: len(first)] + clipped[len(first) :],
                                 clipped[: len(first)] - clipped[len(first) :])) / 2  # fmt: skip
        total = step.total.to(clipped) / step.clip
        overlaps, along = (clipped @ clipped.T).double().cpu(), (clipped @ total).double().cpu()
        values, vectors = torch.linalg.eigh(overlaps)
        kept = values > 1e-5 * values[-1].clamp_min(TINY)
        explained = (vectors.T @ along)[kept].square() / values[kept]
        rest += max(float(total.double().square().sum() - explained.sum()), 0.0)
        free += len(total) - int(kept.sum())
        noise = max(rest / max(free, 1), TINY)
        for number, rate in enumerate(tried):
            odds[number] += _odds(overlaps, along, noise, rate, odds[number], paired=second is not None)

    key.private_steps(rows, probes, see)
    return odds


def _odds(
    overlaps: torch.Tensor, along: torch.Tensor, noise: float, rate: float, before: torch.Tensor, *, paired: bool
) -> torch.Tensor:
    """(k,): what one step adds to the log odds."""
    chance = torch.sigmoid(before)
    # Means and variances (p, k) of amplitudes; of pairs that of half the sum, and of half the difference.
    if paired:
        signed = rate * (2 * chance - 1)
        means = torch.stack((torch.full_like(chance, rate), signed))
        variances = torch.stack((torch.full_like(chance, rate * (1 - rate)), rate - signed.square()))
    else:
        means = (rate * chance)[None]
        variances = means * (1 - means)
    scale = variances.clamp_min(TINY).sqrt()
    whole, (parts, k) = scale.flatten(), scale.shape
    shared = overlaps * whole[:, None] * whole
    found = torch.linalg.solve(
        shared + noise * torch.eye(len(shared), dtype=shared.dtype),
        torch.cat((shared, (whole * (along - overlaps @ means.flatten()))[:, None]), dim=1),
    )
    # Of each canary: everything else is noise, and its own mean is put back.
    own = found[:, :-1].view(parts, k, parts, k).diagonal(dim1=1, dim2=3).permute(2, 0, 1)
    seen = found[:, -1].view(parts, k).T + (own @ (means / scale).T[:, :, None])[:, :, 0]
    apart = torch.linalg.inv(torch.eye(parts, dtype=own.dtype) - own)
    seen, power = (apart @ seen[:, :, None])[:, :, 0], own @ apart

    def likelihood(sign: float) -> torch.Tensor:
        size = torch.stack((1 / scale[0], sign / scale[-1]), dim=1)[:, -parts:]
        exponent = (size * seen).sum(dim=1) - ((size[:, None] @ power) @ size[:, :, None])[:, 0, 0] / 2
        out = torch.full_like(exponent, math.log(max(1 - rate, TINY)))
        return torch.logaddexp(out, exponent + math.log(rate))

    return likelihood(1.0) - likelihood(-1.0) if paired else likelihood(1.0)
