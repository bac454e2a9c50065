"""Counter of score blocks on the CPU, compiled by numba.

`TorchCounter` fused into one pass. Importing this module needs numba; `bench.pairs.sweep.engine` reports if it is
there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar

import numba
import numpy as np
import torch

from bench.pairs.score_blocks import Block
from bench.pairs.score_histogram import Census, Counter, Tally, open_tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

STRIP = 256
LANES = 16
MOST_PENDING = 2**31 - 1
"""Scores that 32-bit counts can hold."""
P = ParamSpec("P")
R = TypeVar("R")
Numbers: TypeAlias = "NDArray[np.int32]"
NONE = np.empty((0, 0))


def _compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile without the GIL, cached on disk if a folder is writable."""
    try:
        fast: Callable[P, R] = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # numba found no folder that it may write to
        fast = numba.njit(nogil=True)(function)
    return fast


def _compiled_sum(function: Callable[P, R]) -> Callable[P, R]:
    """Compile for inlining, with sums in any order."""
    fast: Callable[P, R] = numba.njit(fastmath={"reassoc", "contract"})(function)
    return fast


@_compiled
def _place_exactly(levels, below, score):  # type: ignore[no-untyped-def]
    """Place of an exact score above at least `below` levels.

    `levels` ends with infinity. Most buckets hold one level, which needs no branch; else galloping, then binary search.
    """
    low = below + (levels[below] < score)
    if levels[low] < score:
        count, step = levels.size - 1, 1
        while low + step <= count and levels[low + step - 1] < score:
            low += step
            step *= 2
        high = min(low + step, count)
        while low < high:
            middle = (low + high) // 2
            if levels[middle] < score:
                low = middle + 1
            else:
                high = middle
    return 2 * low + (levels[low] == score)


@_compiled_sum
def _product(left, right):  # type: ignore[no-untyped-def]
    """Inner product of two grid rows, exact in any order of summation."""
    total = 0.0
    for k in range(left.size):
        total += left[k] * right[k]
    return total


@_compiled
def _tally(values, row, col, a, b, bounds, codes, levels, in_rows, in_cols, best, part_of, totals, above, tied):  # type: ignore[no-untyped-def]
    """Count a block in `totals` (places, lanes), a lane for each part."""
    low, scale, zero, last, floor = bounds[0], bounds[1], bounds[2], bounds[3], bounds[4]
    whole = totals.shape[1] == 1
    places = np.empty(STRIP, np.int32)
    doubtful = np.empty(STRIP + 1, np.int32)
    for i in range(values.shape[0]):
        bits = in_rows[row + i]
        for start in range(0, values.shape[1], STRIP):
            strip = values[i, start : start + STRIP]
            width, first = strip.size, col + start
            if whole:
                reached = 0
                for j in range(width):
                    reached += strip[j] >= floor
                if reached == 0:
                    totals[0, 0] += width
                    continue
            for j in range(width):
                bucket = (strip[j] - low) * scale
                bucket = zero if bucket < zero else bucket
                bucket = last if bucket > last else bucket
                places[j] = codes[np.uint32(bucket)]
            count = 0
            for j in range(width):
                doubtful[count] = j
                count += places[j] < 0
            for k in range(count):
                j = doubtful[k]
                score = _product(a[row + i], b[first + j]) if a.size else np.float64(strip[j])
                places[j] = _place_exactly(levels, -1 - places[j], score)
            ties = 0
            for k in range(count):  # odd places: few of the doubtful ones
                doubtful[ties] = doubtful[k]
                ties += places[doubtful[k]] & 1
            if whole:
                for j in range(width):
                    totals[places[j], 0] += 1
            else:
                for j in range(width):
                    total, member = totals[places[j]], in_cols[first + j]
                    for lane in range(LANES):
                        total[lane] += member[lane] & bits[lane]
            for notion in range(best.shape[0]):
                if bits[part_of[notion]]:
                    over, target = above[notion, first : first + width], best[notion, first : first + width]
                    for j in range(width):
                        over[j] += places[j] > target[j]
                    for k in range(ties):
                        tied[notion, first + doubtful[k]] += places[doubtful[k]] == target[doubtful[k]]


class KernelCounter(Counter):
    """Counts blocks with the compiled loop."""

    def __init__(self, census: Census) -> None:
        self.census = census
        self.sum = open_tally(census)
        width = 1 if census.whole else LANES
        if len(census.rows) > width:
            raise ValueError(f"a census must have at most {LANES} parts, got {len(census.rows)}")
        self.in_rows, self.in_cols = _lanes(census.rows, width), _lanes(census.cols, width)
        self.best, self.part_of = census.best.numpy(), np.array(census.part_of, dtype=np.int64)
        self.totals = np.zeros((len(census.places), width), np.int64 if census.whole else np.int32)
        self.above, self.tied = (np.zeros(self.best.shape, np.int32) for _ in range(2))
        places = census.places
        self.codes, self.levels = places.codes.numpy(), np.append(places.levels.numpy(), np.inf)
        bounds = torch.tensor([places.low, places.scale, 0, len(places.codes) - 1, places.floor], dtype=torch.float64)
        self.bounds = bounds.to(places.dtype).numpy()
        self.pending = 0

    def see(self, block: Block) -> None:
        """Count a block."""
        if not self.census.whole and self.pending + block.values.numel() > MOST_PENDING:
            self._flush()
        self.pending += block.values.numel()
        a, b = (NONE, NONE) if block.factors is None else (factor.numpy() for factor in block.factors)
        _tally(
            block.values.numpy(),
            block.rows.start,
            block.cols.start,
            a,
            b,
            self.bounds,
            self.codes,
            self.levels,
            self.in_rows,
            self.in_cols,
            self.best,
            self.part_of,
            self.totals,
            self.above,
            self.tied,
        )

    def tally(self) -> Tally:
        """All counts so far."""
        self._flush()
        return self.sum

    def _flush(self) -> None:
        """Add the 32-bit counts to the 64-bit counts."""
        tallies = (np.ascontiguousarray(self.totals[:, : len(self.census.rows)].T), self.above, self.tied)
        self.sum.add(Tally(*(torch.from_numpy(counts).to(torch.int64) for counts in tallies)))
        for counts in (self.totals, self.above, self.tied):
            counts[:] = 0
        self.pending = 0


def _lanes(members: torch.Tensor, width: int) -> Numbers:
    """Membership (g, n) as (n, width) int32, zero-padded."""
    lanes = np.zeros((members.shape[1], width), np.int32)
    lanes[:, : len(members)] = members.T.numpy()
    return lanes
