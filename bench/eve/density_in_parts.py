"""Gaussian kernel densities of rows too large for memory, summed by parts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from bench.eve.kernel_density import log_density
from bench.memory.rows import Rows, in_blocks, rows_at

SIDE = 2048
"""Rows at a time, on either side, where they are read where they are used."""


def density_in_parts(
    rows: torch.Tensor, own: torch.Tensor, released: torch.Tensor, theirs: torch.Tensor, bandwidths: Sequence[float]
) -> torch.Tensor:
    """`bench.eve.kernel_density.log_density` by parts; bit-equal for ordinary tensors.

    Args:
        rows, released: (n, d) and (m, d) float64, about a common centre.
        own, theirs: int64 indices of both, at least one of the released.
        bandwidths: p positive numbers.
    """
    rows, released = rows_at(rows, own), rows_at(released, theirs)
    if not isinstance(rows, Rows) and not isinstance(released, Rows):
        return log_density(rows, released, bandwidths)
    found = rows.new_full((len(rows), len(bandwidths)), -torch.inf)
    for part, some in rows.blocks(_fitting(rows)) if isinstance(rows, Rows) else in_blocks(rows, SIDE):
        for _, block in in_blocks(released, SIDE):
            found[part] = torch.logaddexp(found[part], log_density(some, block, bandwidths) + math.log(len(block)))
    return found - math.log(len(released))


def _fitting(rows: Rows) -> int:
    """Number of rows that fit beside each part of released rows."""
    return max(1, min(SIDE, rows.budget.whole // 8 // rows.wide))
