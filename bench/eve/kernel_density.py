"""Gaussian kernel densities of one set of rows at another, in blocks."""

from __future__ import annotations

from collections.abc import Sequence

import torch

PAIRS = 2**22
"""Pairs of rows that are looked at together."""


def log_density(rows: torch.Tensor, released: torch.Tensor, bandwidths: Sequence[float]) -> torch.Tensor:
    """Log mean of exp(-|x - y|^2 / (2 h^2)) over released y.

    Shape (n, p) float64, a row x and a bandwidth h each: log densities up to a constant for each bandwidth. Squared
    distances come from products in float64, which err by some 1e-16 of the squared lengths of the rows: far below the
    square of any bandwidth that makes sense.

    Args:
        rows, released: (n, d) and (m, d) float64, about a common centre, m at least 1.
        bandwidths: p positive numbers.
    """
    found = rows.new_empty(len(rows), len(bandwidths))
    squares = released.square().sum(dim=1)
    for part in torch.split(torch.arange(len(rows), device=rows.device), max(1, PAIRS // len(released))):
        some = rows[part]
        apart = (some.square().sum(dim=1, keepdim=True) + squares - 2 * some @ released.T).clamp(min=0)
        for place, bandwidth in enumerate(bandwidths):
            found[part, place] = torch.logsumexp(apart / (-2 * bandwidth**2), dim=1)
    return found - torch.tensor(float(len(released)), dtype=found.dtype).log()
