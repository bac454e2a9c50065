"""Cosine scores whose bits do not depend on how they are computed.

Unit rows are rounded to multiples of 2^-26. Products of two entries are then multiples of 2^-52, and every partial sum
of a dot product stays below 2 in size, so that float64 holds each of them exactly: any order of summation, block size,
thread count or library gives the same bits, and equal rows give equal scores. The rounding moves a cosine by less than
2^-26 sqrt(d).
"""

from __future__ import annotations

import torch
from torch import Tensor

from bench.types import PairScores

GRID = 2.0**26


class CosineScores(PairScores):
    """The cosine of every (raw row, released row).

    Args:
        a: (n, d) one row a candidate.
        b: (m, d) one row a released row.

    Raises:
        ValueError: Shapes that do not match; a row that is not finite or has no length, named by its number.
    """

    def __init__(self, a: Tensor, b: Tensor) -> None:
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
            raise ValueError(
                f"factors must be (n, d) and (m, d) with one d, got shapes {tuple(a.shape)} and {tuple(b.shape)}"
            )
        self.a, self.b = unit_rows(a, "raw"), unit_rows(b, "released")
        self.shape = (len(a), len(b))

    def block(self, rows: slice, cols: slice) -> Tensor:
        """Cosines (rows, cols), float64."""
        return self.a[rows] @ self.b[cols].T

    def factors(self) -> tuple[Tensor, Tensor]:
        """The unit rows on the grid."""
        return self.a, self.b


def unit_rows(rows: Tensor, what: str) -> Tensor:
    """Rows (n, d) at length one on the grid of 2^-26, float64. `what` names the matrix in errors.

    Raises ValueError for a row that is not finite or has no length.
    """
    rows = rows.detach().to(torch.float64)
    largest = rows.abs().amax(dim=1, keepdim=True)
    bad = ~torch.isfinite(largest[:, 0]) | (largest[:, 0] == 0)
    if bad.any():
        row = int(bad.nonzero()[0, 0])
        trouble = "has no length" if float(largest[row]) == 0 else "is not finite"
        raise ValueError(
            f"a cosine needs finite rows with a length: {what} row {row} {trouble} ({int(bad.sum())} such rows)"
        )
    scaled = rows / largest
    unit: Tensor = scaled / torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
    return unit.mul_(GRID).round_().div_(GRID)


def apart(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Factors (n, d + 2) and (m, d + 2) in which a row without length scores 0 with every row of the other matrix.

    For attacks that can say nothing about such a row: its pairs tie, as they should, instead of being an error.
    """
    wide_a, wide_b = (torch.nn.functional.pad(rows, (0, 2)) for rows in (a, b))
    wide_a[:, -2] = (a == 0).all(dim=1).to(a.dtype)
    wide_b[:, -1] = (b == 0).all(dim=1).to(b.dtype)
    return wide_a, wide_b
