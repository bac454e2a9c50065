"""One streaming sweep over all n x m pair scores, giving the integer counts that the pair metrics are made of.

The grid never exists: blocks are read, counted and dropped. Linked scores are read from the same blocks as the rest, so
that a tie is a tie to the last bit. Counts are 64-bit; division happens once, in the metric.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
    """

    shape: tuple[int, int]
    linked: Tensor
    others: Tensor
    top_1: Tensor


def count(scores: PairScores, links: Tensor, *, block: int = BLOCK) -> PairCounts:
    """Sweep the grid twice in blocks: first the linked scores and column maxima, then every score's place among them.

    Args:
        scores: Grid of n raw by m released rows; higher is likelier.
        links: (p, 2) int64, the true pairs (raw row, released row); repeats count once.
        block: Side of the blocks; the result does not depend on it.

    Raises:
        ValueError: No links, links outside the grid, or a score that is not finite (the rows are named).
    """
    links = _check(links, scores.shape)
    order, bounds = _by_block(links, scores.shape, block)
    linked = torch.empty(len(links), dtype=torch.float64)
    best = torch.full((scores.shape[1],), -torch.inf, dtype=torch.float64)
    ties = torch.zeros(scores.shape[1], dtype=torch.int64)
    for number, (rows, cols) in enumerate(blocks(scores.shape, block)):
        part = _read(scores, rows, cols)
        here = order[bounds[number] : bounds[number + 1]]
        linked[here] = part[links[here, 0] - rows.start, links[here, 1] - cols.start]
        top = part.amax(dim=0)
        top_ties = (part == top).sum(dim=0)
        ties[cols] = torch.where(top > best[cols], top_ties, ties[cols] + top_ties * (top == best[cols]))
        best[cols] = torch.maximum(best[cols], top)

    values, linked_counts = torch.unique(linked, return_counts=True)
    places = torch.zeros(2 * len(values) + 1, dtype=torch.int64)
    for rows, cols in blocks(scores.shape, block):
        part = _read(scores, rows, cols).flatten()
        below = torch.searchsorted(values, part)
        tied = values[below.clamp(max=len(values) - 1)] == part
        places += torch.bincount(2 * below + tied, minlength=len(places))
    places[1::2] -= linked_counts
    return PairCounts(scores.shape, linked_counts, places, _top_1(linked, links, best, ties))


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


def _check(links: Tensor, shape: tuple[int, int]) -> Tensor:
    if links.ndim != 2 or links.shape[1] != 2 or len(links) == 0:
        raise ValueError(f"links must have shape (p, 2) with p at least 1, got {tuple(links.shape)}")
    links = torch.unique(links.to("cpu", torch.int64), dim=0)
    low, high = links.amin(dim=0).tolist(), links.amax(dim=0).tolist()
    if min(low) < 0 or high[0] >= shape[0] or high[1] >= shape[1]:
        raise ValueError(
            f"links must lie in the grid {shape}, got rows {low[0]}..{high[0]}, columns {low[1]}..{high[1]}"
        )
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


def _top_1(linked: Tensor, links: Tensor, best: Tensor, ties: Tensor) -> Tensor:
    cols = links[:, 1]
    hits = torch.zeros_like(best).index_add_(0, cols, (linked == best[cols]).to(torch.float64))
    with_link = torch.unique(cols)
    return hits[with_link] / ties[with_link]
