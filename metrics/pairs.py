"""One streaming sweep over all n x m pair scores, giving the integer counts that the pair metrics are made of.

The grid never exists: blocks are read, counted and dropped. Linked scores are read from the same blocks as the rest, so
that a tie is a tie to the last bit. Counts are 64-bit; division happens once, in the metric.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

from bench.types import PairScores

BLOCK = 1024


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How the unlinked scores fall between the linked ones.

    Args:
        shape: (n, m) of the grid.
        linked: (q,) int64, linked pairs at each of the q distinct linked scores, ascending by score.
        others: (2q + 1,) int64, unlinked pairs by place: `others[2i]` strictly between linked scores i - 1 and i,
            `others[2i + 1]` tied with linked score i.
        top_1: (c,) float64 in [0, 1]: for each released row that has a link, the probability that the best-scored raw
            row is a linked one, ties at the top broken at random.
        ranks: (c,) float64 at least 1, in the order of `top_1`: the expected rank of the row's first correct raw row
            within its own column, ties averaged: above + (tied + 1) / (tied and linked + 1).
    """

    shape: tuple[int, int]
    linked: Tensor
    others: Tensor
    top_1: Tensor
    ranks: Tensor = field(default_factory=lambda: torch.ones(0, dtype=torch.float64))


@dataclass(frozen=True, eq=False)
class Grid:
    """A part of the whole grid to count on, with one or more notions of a true pair.

    Args:
        rows: Raw rows (int64, ascending, distinct), numbered in the whole grid.
        cols: Released rows, likewise.
        links: For each notion (p, 2) int64, the true pairs, numbered in the whole grid; repeats count once.
    """

    rows: Tensor
    cols: Tensor
    links: Sequence[Tensor]


def count(scores: PairScores, links: Tensor, *, block: int = BLOCK) -> PairCounts:
    """Counts on the whole grid; see `count_grids`."""
    whole = Grid(torch.arange(scores.shape[0]), torch.arange(scores.shape[1]), [links])
    return count_grids(scores, [whole], block=block)[0][0]


def count_grids(scores: PairScores, grids: Sequence[Grid], *, block: int = BLOCK) -> list[list[PairCounts]]:
    """Counts for each part of one grid and each notion of a true pair, reading every score twice in all.

    The first sweep reads all linked scores and the column maxima, the second finds every score's place among the linked
    scores of all parts; a part's own linked scores are some of them, so its counts are sums of neighbouring places.

    Args:
        scores: n raw by m released rows; higher is likelier.
        grids: The parts.
        block: Side of the blocks; the result does not depend on it.

    Raises:
        ValueError: No links, links outside their part, or a score that is not finite (the rows are named).
    """
    wanted = [[_check(links, grid, scores.shape) for links in grid.links] for grid in grids]
    links = torch.unique(torch.cat([part for parts in wanted for part in parts]), dim=0)
    order, bounds = _by_block(links, scores.shape, block)
    linked = torch.empty(len(links), dtype=torch.float64)
    tops = [_Top(grid) for grid in grids]
    for number, (rows, cols) in enumerate(blocks(scores.shape, block)):
        values = _read(scores, rows, cols)
        here = order[bounds[number] : bounds[number + 1]]
        linked[here] = values[links[here, 0] - rows.start, links[here, 1] - cols.start]
        for top in tops:
            top.see(rows, cols, values)

    codes = links[:, 0] * scores.shape[1] + links[:, 1]
    own = [
        [linked[torch.searchsorted(codes, part[:, 0] * scores.shape[1] + part[:, 1])] for part in parts]
        for parts in wanted
    ]
    ranks = [
        [_Ranks(grid, part, score) for part, score in zip(parts, scored, strict=True)]
        for grid, parts, scored in zip(grids, wanted, own, strict=True)
    ]
    levels = torch.unique(linked)
    places = torch.zeros(len(grids), 2 * len(levels) + 1, dtype=torch.int64)
    for rows, cols in blocks(scores.shape, block):
        values = _read(scores, rows, cols)
        below = torch.searchsorted(levels, values)
        place = below.mul_(2).add_(levels[(below // 2).clamp_(max=len(levels) - 1)] == values)
        for grid, total in zip(grids, places, strict=True):
            total += torch.bincount(_inside(grid, rows, cols, place)[0].flatten(), minlength=places.shape[1])
        for of_grid in ranks:
            for rank in of_grid:
                rank.see(rows, cols, values)

    return [
        [_counts(grid, top, total, levels, *each) for each in zip(parts, scored, of_grid, strict=True)]
        for grid, top, total, parts, scored, of_grid in zip(grids, tops, places, wanted, own, ranks, strict=True)
    ]


def _counts(
    grid: Grid, top: _Top, total: Tensor, levels: Tensor, links: Tensor, linked: Tensor, ranks: _Ranks
) -> PairCounts:
    """Counts of one notion: `total` are all scores by their place among `levels`, `linked` the scores of `links`."""
    values, linked_counts = torch.unique(linked, return_counts=True)
    tied = 2 * torch.searchsorted(levels, values) + 1
    up_to = torch.cat((torch.zeros(1, dtype=torch.int64), total.cumsum(0)))
    edges = torch.cat((torch.zeros(1, dtype=torch.int64), tied + 1)), torch.cat((tied, torch.tensor([len(total)])))
    others = torch.empty(2 * len(values) + 1, dtype=torch.int64)
    others[0::2] = up_to[edges[1]] - up_to[edges[0]]
    others[1::2] = total[tied] - linked_counts
    hits = torch.zeros_like(top.best).index_add_(0, links[:, 1], (linked == top.best[links[:, 1]]).to(torch.float64))
    with_link = torch.unique(links[:, 1])
    return PairCounts(
        (len(grid.rows), len(grid.cols)),
        linked_counts,
        others,
        hits[with_link] / top.ties[with_link],
        ranks.expected(with_link),
    )


class _Ranks:
    """How many scores of every released row stand above, and with, its best linked one within a grid."""

    def __init__(self, grid: Grid, links: Tensor, linked: Tensor) -> None:
        self.grid = grid
        width = int(grid.cols[-1]) + 1
        self.best = torch.full((width,), -torch.inf, dtype=torch.float64)
        self.best.scatter_reduce_(0, links[:, 1], linked, "amax")
        self.correct = torch.zeros(width, dtype=torch.int64).index_add_(
            0, links[:, 1], (linked == self.best[links[:, 1]]).to(torch.int64)
        )
        self.above, self.tied = torch.zeros(width, dtype=torch.int64), torch.zeros(width, dtype=torch.int64)

    def see(self, rows: slice, cols: slice, values: Tensor) -> None:
        inside, which = _inside(self.grid, rows, cols, values)
        self.above[which] += (inside > self.best[which]).sum(dim=0)
        self.tied[which] += (inside == self.best[which]).sum(dim=0)

    def expected(self, cols: Tensor) -> Tensor:
        return self.above[cols] + (self.tied[cols] + 1) / (self.correct[cols].to(torch.float64) + 1)


class _Top:
    """The best score of every released row within a grid, and how many raw rows share it."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        width = int(grid.cols[-1]) + 1
        self.best = torch.full((width,), -torch.inf, dtype=torch.float64)
        self.ties = torch.zeros(width, dtype=torch.int64)

    def see(self, rows: slice, cols: slice, values: Tensor) -> None:
        inside, which = _inside(self.grid, rows, cols, values)
        if inside.numel() == 0:
            return
        top = inside.amax(dim=0)
        ties = (inside == top).sum(dim=0)
        best, before = self.best[which], self.ties[which]
        self.ties[which] = torch.where(top > best, ties, before + ties * (top == best))
        self.best[which] = torch.maximum(best, top)


def _inside(grid: Grid, rows: slice, cols: slice, values: Tensor) -> tuple[Tensor, Tensor]:
    """The block's entries that belong to a grid, and the columns (of the whole grid) they stand in."""
    which = _between(grid.cols, cols)
    chosen = _between(grid.rows, rows)
    inside = values if len(chosen) == values.shape[0] else values[chosen - rows.start]
    return (inside if len(which) == values.shape[1] else inside[:, which - cols.start]), which


def _between(ascending: Tensor, part: slice) -> Tensor:
    low, high = torch.searchsorted(ascending, torch.tensor([part.start, part.stop])).tolist()
    inside: Tensor = ascending[low:high]
    return inside


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


def _check(links: Tensor, grid: Grid, shape: tuple[int, int]) -> Tensor:
    if links.ndim != 2 or links.shape[1] != 2 or len(links) == 0:
        raise ValueError(f"links must have shape (p, 2) with p at least 1, got {tuple(links.shape)}")
    links = torch.unique(links.to("cpu", torch.int64), dim=0)
    low, high = links.amin(dim=0).tolist(), links.amax(dim=0).tolist()
    if min(low) < 0 or high[0] >= shape[0] or high[1] >= shape[1]:
        raise ValueError(
            f"links must lie in the grid {shape}, got rows {low[0]}..{high[0]}, columns {low[1]}..{high[1]}"
        )
    if not (torch.isin(links[:, 0], grid.rows).all() and torch.isin(links[:, 1], grid.cols).all()):
        raise ValueError("links must lie in the rows and columns of their part of the grid")
    return links


def _read(scores: PairScores, rows: slice, cols: slice) -> Tensor:
    part = scores.block(rows, cols).to("cpu", torch.float64)
    finite = part.isfinite()
    if not finite.all():
        row, col = (~finite).nonzero()[0].tolist()
        raise ValueError(
            f"scores must be finite, got {part[row, col].item()} for raw row {rows.start + row} and released row "
            f"{cols.start + col}"
        )
    return part


def _by_block(links: Tensor, shape: tuple[int, int], block: int) -> tuple[Tensor, list[int]]:
    """Link numbers ordered by the block they lie in, and where each block's links begin."""
    row_edges = torch.tensor([part.stop for part in split_evenly(shape[0], block)])
    col_edges = torch.tensor([part.stop for part in split_evenly(shape[1], block)])
    row_block = torch.searchsorted(row_edges, links[:, 0].contiguous(), right=True)
    col_block = torch.searchsorted(col_edges, links[:, 1].contiguous(), right=True)
    number = row_block * len(col_edges) + col_block
    per_block = torch.bincount(number, minlength=len(row_edges) * len(col_edges))
    return torch.argsort(number, stable=True), [0, *per_block.cumsum(0).tolist()]
