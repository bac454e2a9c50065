"""Released columns with nearly the distribution of a raw column.

Small noise, rounding or resampling of a raw column changes each number a little and the distribution hardly, in
whatever order the rows are. Columns are compared by their quantiles, in the raw numbers' own units.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

QUANTILES = 32
LEAST = 1e-6
"""Smallest deviation of a column that tells rows apart."""
TOGETHER = 1 << 24  # numbers that are sorted at a time


@dataclass(frozen=True, eq=False)
class NearColumns:
    """The nearest raw column of each released column.

    Args:
        raw: (q,) int64.
        apart: (q,) float32, mean absolute difference of quantiles over the raw column's deviation; infinite without a
            raw column that varies.
        deviation: (d,) float32, of the raw columns.
    """

    raw: torch.Tensor
    apart: torch.Tensor
    deviation: torch.Tensor


def near_columns(raw: torch.Tensor, released: torch.Tensor) -> NearColumns:
    """The nearest raw column of each released one.

    Args:
        raw: (n, d) float32, on the CPU.
        released: (m, q) float32, their rows in any order, and other rows possibly.
    """
    deviation = raw.std(dim=0, correction=0)
    varies = (deviation > LEAST).nonzero()[:, 0]
    found = torch.zeros(released.shape[1], dtype=torch.int64)
    apart = torch.full((released.shape[1],), torch.inf)
    if not len(varies):
        return NearColumns(found, apart, deviation)
    ours, theirs = _quantiles(raw[:, varies]), _quantiles(released)
    size = max(1, TOGETHER // len(ours))
    for start in range(0, len(theirs), size):
        some = slice(start, start + size)
        least = torch.cdist(theirs[some], ours, p=2).argmin(dim=1)
        found[some] = varies[least]
        apart[some] = (theirs[some] - ours[least]).abs().mean(dim=1) / deviation[varies[least]]
    return NearColumns(found, apart, deviation)


def _quantiles(table: torch.Tensor) -> torch.Tensor:
    """(q, QUANTILES) inner quantiles of the columns, between order statistics."""
    n, q = table.shape
    places = (torch.arange(QUANTILES) + 0.5) / QUANTILES * (n - 1)
    below = places.floor().long()
    share, above = (places - below)[:, None], (below + 1).clamp(max=n - 1)
    parts = []
    for part in torch.split(table, max(1, TOGETHER // n), dim=1):
        ordered = part.sort(dim=0).values
        parts.append((ordered[below] + share * (ordered[above] - ordered[below])).T)
    return torch.cat(parts) if q else torch.empty(0, QUANTILES)
