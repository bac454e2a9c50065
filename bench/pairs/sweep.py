"""Streaming sweep over all n x m pair scores into integer counts.

The grid never exists: blocks are read, counted and dropped (`bench.pairs.score_reader`). First all linked scores are
read exactly; they define the bins of a histogram (`bench.pairs.score_histogram`). Then every score is counted once, for
every part of the grid at once (by `bench.pairs.numba_counter` if numba is installed). If scores are products of known
factors, blocks may be float32 products: doubtful ones are compared exactly, so the counts are those of exact scores to
the last tie. Counts are 64-bit; metrics divide once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Literal

import torch

from bench.pairs.score_blocks import blocks, split_evenly
from bench.pairs.score_histogram import NO_LINK, Counter, Part, TorchCounter
from bench.pairs.score_reader import Reading
from bench.types import PairScores

__all__ = ["Grid", "PairCounts", "blocks", "count", "count_grids", "engine", "split_evenly"]

TOGETHER = 16
"""Parts counted in one census."""

Engine = Literal["numba", "torch"]


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Distribution of the unlinked scores over bins between linked scores.

    Args:
        shape: (n, m) of the grid.
        linked: (q,) int64, linked pairs at each of the q distinct linked scores, ascending by score.
        others: (2q + 1,) int64, unlinked pairs by place: `others[2i]` strictly between linked scores i - 1 and i,
            `others[2i + 1]` tied with linked score i.
        top_1: (c,) float64 in [0, 1]: for each released row that has a link, the probability that the best-scored raw
            row is a linked row, ties at the top broken at random.
        ranks: (c,) float64 at least 1, in the order of `top_1`: the expected rank of the row's first correct raw row
            within its own column, ties averaged: above + (tied + 1) / (tied and linked + 1).
    """

    shape: tuple[int, int]
    linked: torch.Tensor
    others: torch.Tensor
    top_1: torch.Tensor
    ranks: torch.Tensor


@dataclass(frozen=True, eq=False)
class Grid:
    """A part of the grid to count, with its true pairs.

    Args:
        rows: Raw rows (int64, ascending, distinct), numbered in the whole grid.
        cols: Released rows (int64, ascending, distinct), numbered in the whole grid.
        links: For each notion (p, 2) int64, the true pairs, numbered in the whole grid; repeats count once.
    """

    rows: torch.Tensor
    cols: torch.Tensor
    links: Sequence[torch.Tensor]


def engine() -> str:
    """Counting engine on the CPU, for records: "numba VERSION" or "torch"."""
    return "torch" if _kernel() is None else f"numba {version('numba')}"


def count(
    scores: PairScores, links: torch.Tensor, *, block: int | None = None, engine: Engine | None = None
) -> PairCounts:
    """Counts on the whole grid; see `count_grids`."""
    whole = Grid(torch.arange(scores.shape[0]), torch.arange(scores.shape[1]), [links])
    return count_grids(scores, [whole], block=block, engine=engine)[0][0]


def count_grids(
    scores: PairScores, grids: Sequence[Grid], *, block: int | None = None, engine: Engine | None = None
) -> list[list[PairCounts]]:
    """Counts for each part of a grid and notion of a pair.

    One or two readings of the scores serve all of them.

    Args:
        scores: n raw by m released rows; higher is likelier.
        grids: The parts.
        block: Side of the blocks; None chooses by device. The result does not depend on it.
        engine: None takes numba on the CPU if installed, else torch. The result is the same.

    Raises:
        ValueError: No links, links outside their part, or a score that is not finite (the rows are named).
    """
    n, m = scores.shape
    cells = [[_cells(links, grid, (n, m)) for links in grid.links] for grid in grids]
    every = torch.unique(torch.cat([part_cells for of_grid in cells for part_cells in of_grid]))
    reading = Reading(scores, block)
    scores_at = reading.linked(every)
    parts = [
        Part(
            _members(grid.rows, n),
            _members(grid.cols, m),
            part_cells,
            [scores_at[torch.searchsorted(every, cells_of)] for cells_of in part_cells],
        )
        for grid, part_cells in zip(grids, cells, strict=True)
    ]
    groups = _groups(parts)
    counter = _counter(engine, reading.device)
    tallies = reading.sweep([[parts[number] for number in group] for group in groups], counter)
    counts: dict[int, list[PairCounts]] = {}
    for group, (census, tally) in zip(groups, tallies, strict=True):
        levels = census.places.levels.cpu()
        views = zip(census.best.cpu(), tally.above.cpu(), tally.tied.cpu(), strict=True)  # of each part and notion
        for number, total in zip(group, tally.totals.cpu(), strict=True):
            part = parts[number]
            up_to = torch.nn.functional.pad(
                total.cumsum(0), (1, 0)
            )  # once per part, as there may be hundreds of notions
            counts[number] = [
                _counts(_shape(part), linked, levels, total, up_to, *next(views))
                for linked in zip(part.cells, part.scores, strict=True)
            ]
    return [counts[number] for number in range(len(grids))]


def _counts(
    shape: tuple[int, int],
    pairs: tuple[torch.Tensor, torch.Tensor],
    levels: torch.Tensor,
    total: torch.Tensor,
    up_to: torch.Tensor,
    best: torch.Tensor,
    above: torch.Tensor,
    level: torch.Tensor,
) -> PairCounts:
    """Counts of one notion of a part.

    Args:
        shape: Of the part.
        pairs: Numbers of the linked cells, and their scores.
        levels, total, up_to: Of the part: linked scores that places lie among, scores at each place, and before it.
        best, above, level: Of each column: place of its best linked score, and how many scores are above and equal.
    """
    cells, scores = pairs
    values, linked = torch.unique(scores, return_counts=True)
    tied = 2 * torch.searchsorted(levels, values) + 1
    start = torch.nn.functional.pad(tied + 1, (1, 0))
    stop = torch.nn.functional.pad(tied, (0, 1), value=len(total))
    others = torch.empty(2 * len(values) + 1, dtype=torch.int64)
    others[0::2] = up_to[stop] - up_to[start]
    others[1::2] = total[tied] - linked
    cols = cells % len(best)
    place = 2 * torch.searchsorted(levels, scores) + 1
    correct = torch.bincount(cols[place == best[cols]], minlength=len(best))
    linked_cols = best != NO_LINK
    above, level, correct = above[linked_cols], level[linked_cols], correct[linked_cols].to(torch.float64)
    top_1 = torch.where(above == 0, correct / level, 0.0)
    return PairCounts(shape, linked, others, top_1, above + (level + 1) / (correct + 1))


def _shape(part: Part) -> tuple[int, int]:
    return int(part.rows.sum()), int(part.cols.sum())


def _members(numbers: torch.Tensor, length: int) -> torch.Tensor:
    members = torch.zeros(length, dtype=torch.bool)
    members[numbers] = True
    return members


def _groups(parts: Sequence[Part]) -> list[list[int]]:
    """Parts by census: a whole grid alone, others by `TOGETHER` at most."""
    whole = [number for number, part in enumerate(parts) if part.rows.all() and part.cols.all()]
    others = [number for number in range(len(parts)) if number not in whole]
    together = [others[start : start + TOGETHER] for start in range(0, len(others), TOGETHER)]
    return [[number] for number in whole] + together


def _counter(engine: Engine | None, device: torch.device) -> type[Counter]:
    kernel = _kernel() if device.type == "cpu" else None
    if engine == "numba" and kernel is None:
        raise ValueError(f"the engine numba needs numba and scores on the CPU, got scores on {device}")
    return TorchCounter if kernel is None or engine == "torch" else kernel


@cache
def _kernel() -> type[Counter] | None:
    """The compiled counter; None without numba."""
    try:
        from bench.pairs.numba_counter import KernelCounter
    except ImportError:
        return None
    return KernelCounter


def _cells(links: torch.Tensor, grid: Grid, shape: tuple[int, int]) -> torch.Tensor:
    """Cell numbers row * m + column of links, ascending and distinct."""
    if links.ndim != 2 or links.shape[1] != 2 or len(links) == 0:
        raise ValueError(f"links must have shape (p, 2) with p at least 1, got {tuple(links.shape)}")
    links = links.to("cpu", torch.int64)
    low, high = links.amin(dim=0).tolist(), links.amax(dim=0).tolist()
    if min(low) < 0 or high[0] >= shape[0] or high[1] >= shape[1]:
        raise ValueError(
            f"links must lie in the grid {shape}, got rows {low[0]}..{high[0]}, columns {low[1]}..{high[1]}"
        )
    if not (_members(grid.rows, shape[0])[links[:, 0]].all() and _members(grid.cols, shape[1])[links[:, 1]].all()):
        raise ValueError("links must lie in the rows and columns of their part of the grid")
    cells: torch.Tensor = torch.unique(links[:, 0] * shape[1] + links[:, 1])
    return cells
