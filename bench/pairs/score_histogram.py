"""Histogram of scores over bins cut by the linked scores.

Places: a score's bucket is (score - low) * scale, clamped and cut to an integer. Both operations are monotone in IEEE
arithmetic, so a bucket that no linked score can share gives the place at once, without an analysis of rounding; scores
in the other buckets are doubtful and compared exactly.

A census covers parts of the grid that share one set of levels: every score is placed among the levels once, counted for
each part it lies in, and compared with the best linked score of its column under each notion of a true pair.
`TorchCounter` counts in plain torch; `bench.pairs.numba_counter` is compiled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from bench.pairs.score_blocks import Block

MOST_BUCKETS = 2**21


@dataclass(frozen=True, eq=False)
class Places:
    """Places of scores among q distinct linked scores.

    Place 2i is strictly below linked score i and above i - 1; place 2i + 1 is tied with linked score i.

    Args:
        levels: (q,) float64, the linked scores, ascending, exact.
        dtype: Of the scores.
        low, scale: A score's bucket is (score - low) * scale, exact numbers in `dtype`.
        codes: (buckets,) int32: the place of every score in the bucket; or -1 - s if scores must be compared
            exactly and at least s levels are below.
        floor: A score below it has place 0.
    """

    levels: torch.Tensor
    dtype: torch.dtype
    low: float
    scale: float
    codes: torch.Tensor
    floor: float

    def __len__(self) -> int:
        return 2 * len(self.levels) + 1

    def doubtful(self, scores: torch.Tensor) -> torch.Tensor:
        """Mask of the scores (of `dtype`) that the table cannot place."""
        return self._codes(scores) < 0

    def place(
        self, scores: torch.Tensor, exact: Callable[..., torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Places (int32) of scores, and indices of the doubtful ones.

        Every tie is doubtful. `exact` gives the exact scores (float64) at those indices.
        """
        places = self._codes(scores)
        doubtful = (places < 0).nonzero(as_tuple=True)
        truth, below = exact(*doubtful), -1 - places[doubtful]
        ends = torch.nn.functional.pad(self.levels, (0, 1), value=torch.inf)
        below += ends[below] < truth
        # Most buckets have one level and are settled here.
        more = (ends[below] < truth).nonzero()[:, 0]
        below[more] = torch.searchsorted(self.levels, truth[more], out_int32=True)
        places[doubtful] = 2 * below + (ends[below] == truth)
        return places, doubtful

    def _codes(self, scores: torch.Tensor) -> torch.Tensor:
        buckets = _bucket(scores, self.low, self.scale, len(self.codes))
        return self.codes.index_select(0, buckets.flatten()).view(scores.shape)


def exact_places(levels: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Places (int32) of exact scores by binary search."""
    below = torch.searchsorted(levels, scores.to(levels.dtype))
    return (2 * below + (levels[below.clamp(max=len(levels) - 1)] == scores)).to(torch.int32)


def build_places(levels: torch.Tensor, *, dtype: torch.dtype, error: float = 0.0) -> Places:
    """The table for scores within `error` of the exact scores.

    Args:
        levels: (q,) float64, ascending, distinct; without an error they must be exact in `dtype`.
        dtype: float32 or float64.
        error: Largest distance of a score from its exact value.
    """
    buckets = min(max(1 << (16 * len(levels) - 1).bit_length(), 2**10), MOST_BUCKETS)
    under, over = (levels - error).to(dtype), (levels + error).to(dtype)
    if error:
        infinity = torch.tensor(torch.inf, dtype=dtype, device=levels.device)
        under, over = torch.nextafter(under, -infinity), torch.nextafter(over, infinity)
    low, scale = _range(float(under[0]), float(over[-1]), buckets, dtype)
    first, last = (_bucket(edge, low, scale, buckets) for edge in (under, over))
    starts, stops = (torch.bincount(edge, minlength=buckets) for edge in (first, last))
    reached, below = starts.cumsum(0), stops.cumsum(0) - stops
    codes = torch.where(reached > below, -1 - below, 2 * below).to(torch.int32)
    return Places(levels, dtype, low, scale, codes, float(under[0]))


def _range(lowest: float, highest: float, buckets: int, dtype: torch.dtype) -> tuple[float, float]:
    """Exact `low` and `scale` in `dtype`, two spare buckets per end."""
    span = max(highest - lowest, abs(lowest) * 2.0**-20, torch.finfo(dtype).tiny * 2.0**20)
    low, scale = lowest - span * 3 / buckets, (buckets - 6) / span
    low, scale = torch.tensor([low, scale], dtype=torch.float64).to(dtype).tolist()
    usable = abs(low) < torch.inf and 0 < scale < torch.inf and span < torch.inf
    return (low, scale) if usable else (0.0, 0.0)


def _bucket(scores: torch.Tensor, low: float, scale: float, buckets: int) -> torch.Tensor:
    return scores.sub(low).mul_(scale).clamp_(0, buckets - 1).to(torch.int32)


NO_LINK = 2**31 - 1
FEW = 0.1
"""Largest share of a block whose scores are picked one by one."""
MANY = 16
"""Notions of a part, exchanged people among them, beyond which columns are sorted instead of compared with each."""


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the grid with its notions of a true pair.

    Args:
        rows: (n,) bool, its raw rows.
        cols: (m,) bool, its released rows.
        cells: For each notion (p,) int64 numbers of the linked pairs, row * m + column, ascending and distinct.
        scores: For each notion (p,) float64, their exact scores.
    """

    rows: torch.Tensor
    cols: torch.Tensor
    cells: Sequence[torch.Tensor]
    scores: Sequence[torch.Tensor]


@dataclass(frozen=True, eq=False)
class Census:
    """Fixed tables of g parts and v (part, notion) pairs.

    On the device of the scores.

    Args:
        places: Where scores fall among the linked scores of all parts.
        rows: (g, n) bool.
        cols: (g, m) bool.
        best: (v, m) int32, place of the best linked score of each column, or NO_LINK.
        part_of: Part number of each of the v pairs.
    """

    places: Places
    rows: torch.Tensor
    cols: torch.Tensor
    best: torch.Tensor
    part_of: tuple[int, ...]

    @cached_property
    def whole(self) -> bool:
        """One part, and it is the whole grid."""
        return len(self.rows) == 1 and bool(self.rows.all() and self.cols.all())


@dataclass(frozen=True, eq=False)
class Tally:
    """Running counts of a census, int64.

    `totals` (g, places): scores of each part by place. `above` and `tied` (v, m): scores of a column above and equal to
    its best linked score.
    """

    totals: torch.Tensor
    above: torch.Tensor
    tied: torch.Tensor

    def add(self, other: Tally) -> None:
        """Add another tally of the same census."""
        self.totals.add_(other.totals)
        self.above.add_(other.above)
        self.tied.add_(other.tied)


def open_census(parts: Sequence[Part], *, dtype: torch.dtype, error: float, device: torch.device) -> Census:
    """The census of `parts` for scores within `error` of the exact ones."""
    m = len(parts[0].cols)
    levels = torch.unique(torch.cat([scores for part in parts for scores in part.scores]))
    best = []
    for part in parts:
        for cells, scores in zip(part.cells, part.scores, strict=True):
            of_column = torch.full((m,), -1, dtype=torch.int32)
            of_column.scatter_reduce_(0, cells % m, exact_places(levels, scores), "amax")
            best.append(torch.where(of_column < 0, NO_LINK, of_column))
    return Census(
        build_places(levels.to(device), dtype=dtype, error=error),
        torch.stack([part.rows for part in parts]).to(device),
        torch.stack([part.cols for part in parts]).to(device),
        torch.stack(best).to(device),
        tuple(number for number, part in enumerate(parts) for _ in part.cells),
    )


def open_tally(census: Census) -> Tally:
    """All zero."""
    device = census.rows.device
    above = torch.zeros(census.best.shape, dtype=torch.int64, device=device)
    totals = torch.zeros(len(census.rows), len(census.places), dtype=torch.int64, device=device)
    return Tally(totals, above, torch.zeros_like(above))


class Counter(ABC):
    """Counter of the blocks of a census, each pair once."""

    @abstractmethod
    def __init__(self, census: Census) -> None: ...

    @abstractmethod
    def see(self, block: Block) -> None:
        """Count a block."""

    @abstractmethod
    def tally(self) -> Tally:
        """All counts so far."""


class TorchCounter(Counter):
    """Counts with torch, on whatever device the scores are."""

    def __init__(self, census: Census) -> None:
        self.census, self.sum = census, open_tally(census)

    def see(self, block: Block) -> None:
        """Count a block."""
        if self.census.whole:
            reached = block.values >= self.census.places.floor
            if int(reached.sum()) < FEW * reached.numel():
                self._see_few(block, *reached.nonzero(as_tuple=True))
                return
        census = self.census
        places, (rows, cols) = census.places.place(block.values, block.exact)
        doubtful, best = places[rows, cols], census.best[:, block.cols]
        in_rows, in_cols = census.rows[:, block.rows], census.cols[:, block.cols]
        above, tied = self.sum.above[:, block.cols], self.sum.tied[:, block.cols]
        for part, (some, others) in enumerate(zip(in_rows, in_cols, strict=True)):
            band = places if some.all() else places[some]
            inside = band if others.all() else band[:, others]
            self.sum.totals[part] += torch.bincount(inside.flatten(), minlength=len(census.places))
            notions = [number for number, of in enumerate(census.part_of) if of == part]
            if len(notions) > MANY:
                higher, equal = _compared(band, best[notions])
                above[notions] += higher
                tied[notions] += equal
                continue
            for notion in notions:
                above[notion] += (band > best[notion]).sum(dim=0, dtype=torch.int32)
                ties = (doubtful == best[notion][cols]) & some[rows]
                tied[notion] += torch.bincount(cols[ties], minlength=len(others))

    def _see_few(self, block: Block, rows: torch.Tensor, cols: torch.Tensor) -> None:
        """Count a whole grid's block: only scores at `rows`, `cols` are high."""
        places, _ = self.census.places.place(block.values[rows, cols], lambda some: block.exact(rows[some], cols[some]))
        self.sum.totals[0] += torch.bincount(places, minlength=len(self.census.places))
        self.sum.totals[0, 0] += block.values.numel() - len(places)
        for notion, best in enumerate(self.census.best[:, block.cols]):
            for counts, hits in ((self.sum.above, places > best[cols]), (self.sum.tied, places == best[cols])):
                counts[notion, block.cols] += torch.bincount(cols[hits], minlength=len(best))

    def tally(self) -> Tally:
        """All counts so far."""
        return self.sum


def _compared(places: torch.Tensor, best: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts (v, c) above and equal to each best of a column.

    Of places (r, c) and best places (v, c).
    """
    columns, targets = places.T.contiguous(), best.T.contiguous()
    if columns.device.type == "cpu":  # by numpy: many times faster
        columns = torch.from_numpy(np.sort(columns.numpy(), axis=-1))
    else:
        columns = columns.sort(dim=-1).values
    up_to = torch.searchsorted(columns, targets, right=True).T
    return len(places) - up_to, up_to - torch.searchsorted(columns, targets).T
