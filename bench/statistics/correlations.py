"""Pearson correlations of the columns of a table."""

from __future__ import annotations

import torch

from bench.statistics.two_samples import standard

CONSTANT = 1e-12
"""Of a column's variance: what resampling leaves below it is rounding."""


def correlations(rows: torch.Tensor, times: torch.Tensor | None = None) -> torch.Tensor:
    """Pearson correlations (d, d) float64 of the columns of (n, d); a constant column has 0 with all, even itself.

    Args:
        rows: (n, d).
        times: (n,) how often each row counts; None stands for once.
    """
    units = standard(rows)
    shares = torch.full((len(rows),), 1 / len(rows), dtype=torch.float64) if times is None else times / times.sum()
    centred = units - shares.to(units) @ units
    products = centred.T @ (centred * shares.to(units)[:, None])
    variance = products.diagonal()
    scale = torch.where(variance > CONSTANT, variance.clamp_min(CONSTANT).rsqrt(), 0.0)
    return products * scale * scale[:, None]
