"""Blocks of a score matrix, and best matches found block by block."""

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
    """Scores of a block: exact, or float32 products of `factors`."""

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
    """Inner products (p,) of float64 rows of a and b.

    `rows` and `cols` number the pairs. No gradient; a slice of the pairs at a time.
    """
    step = max(GATHERED // a.shape[1], 1)
    if isinstance(a, Rows):  # each read of rows has a fixed cost
        step = max(step, a.budget.block // a.wide)
    sums = torch.empty(len(rows), dtype=a.dtype, device=a.device)
    for start in range(0, len(rows), step):  # in place: small results between large tensors would fragment memory
        part = slice(start, start + step)
        torch.sum(a[rows[part]] * b[cols[part]], dim=1, out=sums[part])
    return sums


def all_products(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Inner products (n, m) of rows (n, d) and (m, d)."""
    return all_pairs(a, b, lambda part, other: part @ other.T)


def all_pairs(
    a: torch.Tensor, b: torch.Tensor, compare: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Results of `compare` for all row pairs, (n, d) by (m, d).

    `compare` maps ordinary rows and others to (rows, others). At most a block of each is read at a time; if all of `b`
    fit as an ordinary tensor, they are read once instead of once per block of `a`.
    """
    if not isinstance(a, Rows) and not isinstance(b, Rows):
        return compare(a, b)
    if isinstance(b, Rows) and b.bytes_of(len(b)) <= b.budget.plain:
        b = b.whole()
    return torch.cat(
        [torch.cat([compare(part, other) for _, other in in_blocks(b)], dim=1) for _, part in in_blocks(a)]
    )


def blocks(shape: tuple[int, int], block: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of nearly equal size, row by row."""
    for rows in split_evenly(shape[0], block):
        for cols in split_evenly(shape[1], block):
            yield rows, cols


def split_evenly(length: int, block: int) -> list[slice]:
    """The fewest nearly equal slices of at most `block`.

    >>> split_evenly(10, 4)
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    parts = -(-length // block)
    edges = [length * part // parts for part in range(parts + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


BLOCK = 1024


def first_guesses(scores: PairScores, *, block: int = BLOCK) -> torch.Tensor:
    """Eve's best-scored raw row (m,) int64, on the CPU, per released row.

    Of equal scores the first: candidates stand in a secret random order, so it is any of them.

    Args:
        scores: n raw by m released rows.
        block: Side of the blocks; the result does not depend on it.
    """
    m = scores.shape[1]
    best, rows = torch.full((m,), -torch.inf, dtype=torch.float64), torch.zeros(m, dtype=torch.int64)
    for band, cols in blocks(scores.shape, block):
        top, index = scores.block(band, cols).detach().max(dim=0)
        values, places = top.to("cpu", torch.float64), index.cpu() + band.start
        # Blocks of one column band come from the top down, or in any order: of equal scores the lower row stays.
        better = (values > best[cols]) | ((values == best[cols]) & (places < rows[cols]))
        best[cols] = torch.where(better, values, best[cols])
        rows[cols] = torch.where(better, places, rows[cols])
    return rows


@dataclass(frozen=True, eq=False)
class Best:
    """The best raw row of each released row, and its lead.

    `raw` (m,) int64; `lead` (m,) float64 over the second-best; `mutual` (m,) bool: the released row is the best of that
    raw row too. The first of equal scores counts.
    """

    raw: torch.Tensor
    lead: torch.Tensor
    mutual: torch.Tensor


def best(scores: PairScores) -> Best:
    """Best raw rows of all released rows, block by block."""
    n, m = scores.shape
    raw, lead = [], []
    row_top: list[torch.Tensor] = []
    row_at: list[torch.Tensor] = []
    for left in range(0, m, BLOCK):
        cols = slice(left, min(left + BLOCK, m))
        tops, indices = [], []
        for low in range(0, n, BLOCK):
            part = scores.block(slice(low, min(low + BLOCK, n)), cols).double()
            value, index = part.topk(min(2, len(part)), dim=0)
            tops.append(value)
            indices.append(index + low)
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
        raw.append(torch.cat(indices).gather(0, place[:1])[0])
        lead.append(value[0] - value[-1])
    raw_rows = torch.cat(raw)
    mutual = torch.cat(row_at)[raw_rows] == torch.arange(m, device=raw_rows.device)
    return Best(raw_rows, torch.cat(lead), mutual)
