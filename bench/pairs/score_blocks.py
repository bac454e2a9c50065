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


TIED = 4_000_000
"""Chances held at once of groups of raw rows and released rows with tied best scores."""


@dataclass(frozen=True, eq=False)
class FirstGuesses:
    """Eve's first guess for every released row, tied best scores at random.

    Args:
        hits: (o,) float64 in [0, 1], by asked pair: the probability that the released row's first guess is of the
            group.
        named: (g,) float64, by group: the expected number of released rows whose first guess is of the group.
        squares: (g,) float64: the sum of those probabilities squared.
        rows: m, the number of released rows.
    """

    hits: torch.Tensor
    named: torch.Tensor
    squares: torch.Tensor
    rows: int


def first_guesses(scores: PairScores, groups: torch.Tensor, asked: torch.Tensor, *, block: int = BLOCK) -> FirstGuesses:
    """Groups of the best-scored raw rows, averaged over ties.

    If t raw rows share the best score of a released row and c of them are of a group, the probability is c / t.

    Args:
        scores: n raw by m released rows.
        groups: (n,) int64 on the CPU, the group of each raw row from 0: its person.
        asked: (2, o) int64 on the CPU: groups and released rows.
        block: Side of the blocks; the result does not depend on it.
    """
    n, m = scores.shape
    count = int(groups.max()) + 1
    named, squares = torch.zeros(count, dtype=torch.float64), torch.zeros(count, dtype=torch.float64)
    hits = torch.zeros(asked.shape[1], dtype=torch.float64)
    bands = split_evenly(n, block)
    for cols in split_evenly(m, block):
        best, first, tied = _tops(scores, bands, cols)
        alone = tied == 1
        guessed = groups[first]
        sure = torch.bincount(guessed[alone], minlength=count)
        named += sure
        squares += sure
        here = ((asked[1] >= cols.start) & (asked[1] < cols.stop)).nonzero().flatten()
        at = asked[1, here] - cols.start
        hits[here] = (alone[at] & (guessed[at] == asked[0, here])).double()
        for part in torch.split((~alone).nonzero().flatten(), max(1, TIED // count)):
            chances = torch.zeros(count, len(part), dtype=torch.float64)
            for band in bands:
                top = scores.block(band, cols).detach()[:, part.to(best.device)] == best[part.to(best.device)]
                chances.index_add_(0, groups[band], top.to("cpu", torch.float64))
            chances /= tied[part]
            named += chances.sum(dim=1)
            squares += chances.square().sum(dim=1)
            place = torch.full((len(tied),), -1).index_copy_(0, part, torch.arange(len(part)))[at]
            hits[here[place >= 0]] = chances[asked[0, here[place >= 0]], place[place >= 0]]
    return FirstGuesses(hits, named, squares, m)


def _tops(scores: PairScores, bands: list[slice], cols: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Each released row's best score, first raw row and number of ties."""
    best: torch.Tensor | None = None
    for band in bands:
        part = scores.block(band, cols).detach()
        top, index = part.max(dim=0)
        count, index = (part == top).sum(dim=0), index + band.start
        if best is None:
            best, first, tied = top, index, count
            continue
        better, equal = top > best, top == best
        first = torch.where(better, index, first)
        tied = torch.where(better, count, tied + count * equal)
        best = torch.where(better, top, best)
    assert best is not None
    return best, first.cpu(), tied.cpu()


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
