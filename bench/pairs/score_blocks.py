"""Blocks of a grid of scores.

Eve's first guess for every released row: the raw row that she scores highest.

The pairs of a grid of scores that are each other's best, found block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch

from bench.memory.rows import Rows, in_blocks
from bench.types import PairScores

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


BLOCK = 1024


def first_guesses(scores: PairScores, *, block: int = BLOCK) -> torch.Tensor:
    """(m,) int64 on the CPU: the best-scored raw row of each released row; of equal ones the first.

    Candidates stand in a secret random order, so that the first of equal ones is any of them.

    Args:
        scores: n raw by m released rows.
        block: Side of the blocks; the result does not depend on it.
    """
    m = scores.shape[1]
    best, rows = torch.full((m,), -torch.inf, dtype=torch.float64), torch.zeros(m, dtype=torch.int64)
    for band, cols in blocks(scores.shape, block):
        found, at = scores.block(band, cols).detach().max(dim=0)
        values, places = found.to("cpu", torch.float64), at.cpu() + band.start
        # Blocks of one column band come from the top down, or in any order: of equal scores the lower row stays.
        better = (values > best[cols]) | ((values == best[cols]) & (places < rows[cols]))
        best[cols] = torch.where(better, values, best[cols])
        rows[cols] = torch.where(better, places, rows[cols])
    return rows


@dataclass(frozen=True, eq=False)
class Best:
    """Of each released row: the best raw row (m,) int64 and by how much it leads the second (m,) float64.

    `mutual` (m,) bool: of that raw row, this released row is the best too. The first of several equal rows counts.
    """

    raw: torch.Tensor
    lead: torch.Tensor
    mutual: torch.Tensor


def best(scores: PairScores) -> Best:
    """Best raw rows of all released rows; no more than a block of scores is held at a time."""
    n, m = scores.shape
    raw, lead = [], []
    row_top: list[torch.Tensor] = []
    row_at: list[torch.Tensor] = []
    for left in range(0, m, BLOCK):
        cols = slice(left, min(left + BLOCK, m))
        tops, ats = [], []
        for low in range(0, n, BLOCK):
            part = scores.block(slice(low, min(low + BLOCK, n)), cols).double()
            value, at = part.topk(min(2, len(part)), dim=0)
            tops.append(value)
            ats.append(at + low)
            here = part.max(dim=1)
            if left == 0:
                row_top.append(here.values)
                row_at.append(here.indices)
            else:
                block = low // BLOCK
                better = here.values > row_top[block]
                row_top[block] = torch.where(better, here.values, row_top[block])
                row_at[block] = torch.where(better, here.indices + left, row_at[block])
        value, place = torch.cat(tops).topk(min(2, n), dim=0)
        raw.append(torch.cat(ats).gather(0, place[:1])[0])
        lead.append(value[0] - value[-1])
    found = torch.cat(raw)
    mutual = torch.cat(row_at)[found] == torch.arange(m, device=found.device)
    return Best(found, torch.cat(lead), mutual)
