"""Blocks of a grid of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch

from bench.memory.rows import Rows, in_blocks

GATHERED = 2**17
"""Numbers gathered at once for exact scores of single pairs."""


@dataclass(frozen=True, eq=False)
class Block:
    """Scores of a block of the grid: exact, or within a proven error of the exact products of `factors`."""

    rows: slice
    cols: slice
    values: torch.Tensor
    factors: tuple[torch.Tensor, torch.Tensor] | None

    def exact(self, rows: torch.Tensor, cols: torch.Tensor) -> torch.Tensor:
        """Exact scores (float64) of pairs numbered within the block."""
        if self.factors is None:
            return self.values[rows, cols].to(torch.float64)
        return products(*self.factors, rows + self.rows.start, cols + self.cols.start)


def products(a: torch.Tensor, b: torch.Tensor, rows: torch.Tensor, cols: torch.Tensor) -> torch.Tensor:
    """Inner products (p,) of float64 rows of a and b given by number, a slice of the pairs at a time; no gradient."""
    step = max(GATHERED // a.shape[1], 1)
    if isinstance(a, Rows):  # each reading of rows takes its time, however few they are
        step = max(step, a.budget.block // a.wide)
    found = torch.empty(len(rows), dtype=a.dtype, device=a.device)
    for at in range(0, len(rows), step):  # a small tensor of each step would lie between the large ones, and part them
        part = slice(at, at + step)
        torch.sum(a[rows[part]] * b[cols[part]], dim=1, out=found[part])
    return found


def all_products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Inner products (n, m) of rows (n, d) and (m, d), as `all_pairs` reads them."""
    return all_pairs(a, b, lambda part, other: part @ other.T)


def all_pairs(
    a: torch.Tensor, b: torch.Tensor, compare: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """What `compare` (ordinary rows and others to (rows, others)) gives for all pairs of rows (n, d) and (m, d).

    No more than a block of each is read at a time; where all of `b` fit as an ordinary tensor, they are read once and
    not once for every block of `a`.
    """
    if not isinstance(a, Rows) and not isinstance(b, Rows):
        return compare(a, b)
    if isinstance(b, Rows) and b.bytes_of(len(b)) <= b.budget.plain:
        b = b.whole()
    return torch.cat([torch.cat([compare(part, each) for _, each in in_blocks(b)], dim=1) for _, part in in_blocks(a)])


def blocks(shape: tuple[int, int], block: int) -> Iterator[tuple[slice, slice]]:
    """The grid in blocks of nearly equal size (never a thin remainder), row by row."""
    for rows in split_evenly(shape[0], block):
        for cols in split_evenly(shape[1], block):
            yield rows, cols


def split_evenly(length: int, block: int) -> list[slice]:
    """`length` cut into the fewest nearly equal slices of at most `block`.

    >>> split_evenly(10, 4)
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    parts = -(-length // block)
    edges = [length * part // parts for part in range(parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]
