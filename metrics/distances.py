"""Euclidean distances between rows, in blocks, without cancellation."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.types import NotApplicable

_CLOSE = 1e-6


def standardise(original: Tensor, released: Tensor) -> tuple[Tensor, Tensor]:
    """Both sets (rows flattened, float64) on the original set's scale: its mean taken off, its deviation divided out.

    Columns that are constant in the original carry no scale and are only centred.

    Raises:
        NotApplicable: The sets do not live in the same space.
        ValueError: A row is not finite (the row is named).
    """
    if original.shape[1:] != released.shape[1:]:
        raise NotApplicable(
            f"distances need one space: raw rows have shape {tuple(original.shape[1:])}, "
            f"released rows {tuple(released.shape[1:])}"
        )
    original, released = (rows.flatten(1).to(torch.float64) for rows in (original, released))
    for what, rows in (("raw", original), ("released", released)):
        bad = (~rows.isfinite()).any(dim=1).nonzero()
        if len(bad):
            raise ValueError(f"{what} row {int(bad[0])} is not finite")
    mean, deviation = original.mean(dim=0), original.std(dim=0, correction=0)
    scale = torch.where(deviation > 0, deviation, 1.0)
    return (original - mean) / scale, (released - mean) / scale


def distances(a: Tensor, b: Tensor) -> Tensor:
    """All distances between the rows of a (n, d) and b (m, d), float64, exact at duplicates.

    Products lose digits where two rows are close, so those pairs are recomputed from their differences.
    """
    squares_a, squares_b = a.square().sum(dim=1), b.square().sum(dim=1)
    size = squares_a[:, None] + squares_b[None]
    squared = torch.addmm(size, a, b.T, alpha=-2).clamp_(min=0)
    rows, cols = (squared < _CLOSE * size).nonzero(as_tuple=True)
    squared[rows, cols] = (a[rows] - b[cols]).square().sum(dim=1)
    return squared.sqrt_()
