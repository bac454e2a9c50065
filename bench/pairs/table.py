"""Pair scores that were computed as one table, for attacks that match sets as a whole and so need all of it."""

from __future__ import annotations

import torch

from bench.types import PairScores


class TableScores(PairScores):
    """The entries of a table (n, m), float64.

    Raises:
        ValueError: A table that is not a matrix, or an entry that is not finite.
    """

    def __init__(self, table: torch.Tensor) -> None:
        if table.ndim != 2:
            raise ValueError(f"a table of scores must have shape (n, m), got {tuple(table.shape)}")
        if not bool(table.isfinite().all()):
            row, col = (~table.isfinite()).nonzero()[0].tolist()
            raise ValueError(
                f"scores must be finite, got {float(table[row, col])} for raw row {row}, released row {col}"
            )
        self.table = table.detach().to(torch.float64)
        self.shape = (table.shape[0], table.shape[1])

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Entries (rows, cols)."""
        return self.table[rows, cols]
