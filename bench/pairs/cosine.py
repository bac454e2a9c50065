"""Cosine scores whose bits do not depend on how they are computed.

Unit rows are rounded to multiples of 2^-26. Products of two entries are then multiples of 2^-52, and every partial sum
of a dot product stays below 2 in size, so that float64 holds each of them exactly: any order of summation, block size,
thread count or library gives the same bits, and equal rows give equal scores. The rounding moves a cosine by less than
2^-26 sqrt(d).
"""

from __future__ import annotations

from functools import partial

import torch

from bench.memory.rows import Rows, rows_at
from bench.pairs.blocks import all_products
from bench.types import PairScores

GRID = 2.0**26
HANDED_BYTES = 1 << 33


class CosineScores(PairScores):
    """The cosine of every (raw row, released row).

    Args:
        a: (n, d) one row a candidate.
        b: (m, d) one row a released row.

    Raises:
        ValueError: Shapes that do not match; a row that is not finite or has no length, named by its number.
    """

    def __init__(self, a: torch.Tensor, b: torch.Tensor) -> None:
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
            raise ValueError(
                f"factors must be (n, d) and (m, d) with one d, got shapes {tuple(a.shape)} and {tuple(b.shape)}"
            )
        self.a, self.b = unit_rows(a, "raw"), unit_rows(b, "released")
        self.shape = (len(a), len(b))

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Cosines (rows, cols), float64."""
        return all_products(rows_at(self.a, rows), rows_at(self.b, cols))

    def factors(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The unit rows on the grid; None where they are too large to be handed over."""
        bytes_ = sum(side.numel() * side.element_size() for side in (self.a, self.b))
        return (self.a, self.b) if bytes_ <= HANDED_BYTES else None


def unit_rows(rows: torch.Tensor, what: str) -> torch.Tensor:
    """Rows (n, d) at length one on the grid of 2^-26, float64. `what` names the matrix in errors.

    Raises ValueError for a row that is not finite or has no length.
    """
    rows = rows.detach().to(torch.float64)
    largest = rows.abs().amax(dim=1)
    bad = ~torch.isfinite(largest) | (largest == 0)
    if bad.any():
        row = int(bad.nonzero()[0, 0])
        trouble = "has no length" if float(largest[row]) == 0 else "is not finite"
        raise ValueError(
            f"a cosine needs finite rows with a length: {what} row {row} {trouble} ({int(bad.sum())} such rows)"
        )
    return rows.map(_on_grid) if isinstance(rows, Rows) else _on_grid(rows)


def _on_grid(rows: torch.Tensor) -> torch.Tensor:
    scaled = rows / rows.abs().amax(dim=1, keepdim=True)
    unit: torch.Tensor = scaled.div_(torch.linalg.vector_norm(scaled, dim=1, keepdim=True))
    return unit.mul_(GRID).round_().div_(GRID)


def apart(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Factors (n, d + 2) and (m, d + 2) in which a row without length scores 0 with every row of the other matrix.

    For attacks that can say nothing about such a row: its pairs tie, as they should, instead of being an error.
    """
    wide_a, wide_b = (
        rows.map(partial(_widened, place=place)) if isinstance(rows, Rows) else _widened(rows, place)
        for rows, place in ((a, -2), (b, -1))
    )
    return wide_a, wide_b


def _widened(rows: torch.Tensor, place: int) -> torch.Tensor:
    wide = torch.nn.functional.pad(rows, (0, 2))
    wide[:, place] = (rows == 0).all(dim=1).to(rows.dtype)
    return wide
