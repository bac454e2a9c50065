"""Score matrices for attacks: cosines, tables, blends, posterior log odds.

Cosines have the same bits on every machine. Unit rows are rounded to multiples of 2^-26. Products of two entries are
then multiples of 2^-52, and every partial sum of a dot product stays below 2 in size, so float64 holds each exactly:
any order of summation, block size, thread count or library gives the same bits, and equal rows give equal scores. The
rounding moves a cosine by less than 2^-26 sqrt(d).

Posterior: with L[i, j] the log density of released row j given candidate i and a uniform prior, p[i, j] = exp(L[i, j])
/ sum over k of exp(L[k, j]). Normalising within a column removes what makes a released row common or rare, so scores of
different columns compare. The score is the log odds log p - log(1 - p). It orders pairs as p does, and still ranks them
if p rounds to 1. Equal densities within a column give equal scores; a single candidate scores 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import TypeAlias

import torch

from bench.memory.rows import Rows, rows_at
from bench.pairs.score_blocks import all_products
from bench.types import PairScores

GRID = 2.0**26
HANDED_BYTES = 1 << 33


class CosineScores(PairScores):
    """The cosine of every (raw row, released row).

    Args:
        a: (n, d) one row a candidate.
        b: (m, d) one row a released row.

    Raises:
        ValueError: Shapes that do not match; a row that is not finite or has no length, named by its number.
    """

    def __init__(self, a: torch.Tensor, b: torch.Tensor) -> None:
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
            raise ValueError(
                f"factors must be (n, d) and (m, d) with one d, got shapes {tuple(a.shape)} and {tuple(b.shape)}"
            )
        self.a, self.b = unit_rows(a, "raw"), unit_rows(b, "released")
        self.shape = (len(a), len(b))

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Cosines (rows, cols), float64."""
        return all_products(rows_at(self.a, rows), rows_at(self.b, cols))

    def factors(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The unit rows on the grid; None if over 8 GiB."""
        bytes_ = sum(side.numel() * side.element_size() for side in (self.a, self.b))
        return (self.a, self.b) if bytes_ <= HANDED_BYTES else None


def unit_rows(rows: torch.Tensor, what: str) -> torch.Tensor:
    """Rows (n, d) scaled to length one, rounded to 2^-26, float64.

    `what` names the matrix in errors.

    Raises ValueError for a row that is not finite or has no length.
    """
    rows = rows.detach().to(torch.float64)
    largest = rows.abs().amax(dim=1)
    bad = ~torch.isfinite(largest) | (largest == 0)
    if bad.any():
        row = int(bad.nonzero()[0, 0])
        trouble = "has no length" if float(largest[row]) == 0 else "is not finite"
        raise ValueError(
            f"a cosine needs finite rows with a length: {what} row {row} {trouble} ({int(bad.sum())} such rows)"
        )
    return rows.map(_on_grid) if isinstance(rows, Rows) else _on_grid(rows)


def _on_grid(rows: torch.Tensor) -> torch.Tensor:
    scaled = rows / rows.abs().amax(dim=1, keepdim=True)
    unit: torch.Tensor = scaled.div_(torch.linalg.vector_norm(scaled, dim=1, keepdim=True))
    return unit.mul_(GRID).round_().div_(GRID)


def apart(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Factors in which rows of length zero score 0 with all others.

    Shapes (n, d + 2) and (m, d + 2). For attacks that learn nothing from such a row: its pairs tie instead of raising
    an error.
    """
    wide_a, wide_b = (
        rows.map(partial(_widened, place=place)) if isinstance(rows, Rows) else _widened(rows, place)
        for rows, place in ((a, -2), (b, -1))
    )
    return wide_a, wide_b


def _widened(rows: torch.Tensor, place: int) -> torch.Tensor:
    wide = torch.nn.functional.pad(rows, (0, 2))
    wide[:, place] = (rows == 0).all(dim=1).to(rows.dtype)
    return wide


class TableScores(PairScores):
    """A table's entries (n, m), float64. Raises ValueError unless all are finite."""

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


SAMPLE = 1024


class BlendedScores(PairScores):
    """Weighted sum of two attacks' scores, each in standard deviations.

    The deviation is that of the first block of up to 1024 x 1024 scores.

    Raises:
        ValueError: Scores of different shapes.
    """

    def __init__(self, first: PairScores, second: PairScores, weight: float) -> None:
        if tuple(first.shape) != tuple(second.shape):
            raise ValueError(f"scores to add must be of the same pairs, got {first.shape} and {second.shape}")
        self.shape = (first.shape[0], first.shape[1])
        self._parts = ((first, 1 / _deviation(first)), (second, weight / _deviation(second)))

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Sums (rows, cols), float64."""
        (first, one), (second, two) = self._parts
        return first.block(rows, cols).double() * one + second.block(rows, cols).double() * two


def _deviation(scores: PairScores) -> float:
    n, m = scores.shape
    part = scores.block(slice(0, min(n, SAMPLE)), slice(0, min(m, SAMPLE))).double()
    return max(float(part.std(correction=0)), torch.finfo(torch.float64).tiny)


KEPT = 2**30
"""Bytes of stored log densities; larger grids are recomputed block by block."""
BLOCK = 1024

Density: TypeAlias = "Callable[[slice, slice], torch.Tensor]"
_Summary: TypeAlias = "tuple[torch.Tensor, torch.Tensor, torch.Tensor]"
"""Per column or part of it: largest log density, its count, log of the sum of the others."""


class PosteriorScores(PairScores):
    """Log odds of the posterior, float64; see the module's docstring.

    Args:
        density: Log densities (rows, cols) of a block, float64, up to a constant per column; a pair has the same bits
            in every block.
        shape: (n, m).
        kept: Store the log densities of grids of at most this many bytes.

    Raises:
        ValueError: A log density that is not finite.
    """

    def __init__(self, density: Density, shape: tuple[int, int], *, kept: int = KEPT) -> None:
        self.shape, self._density = shape, density
        n, m = shape
        if 8 * n * m <= kept:
            table = density(slice(0, 1), slice(0, 1)).new_empty(shape)
            for rows in _slices(n):
                for cols in _slices(m):
                    table[rows, cols] = density(rows, cols)
            self._density = lambda rows, cols: table[rows, cols]
        columns = [self._column(cols) for cols in _slices(m)]
        self._top, self._times, self._rest = (torch.cat(parts) for parts in zip(*columns, strict=True))

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Log odds (rows, cols)."""
        top, times, rest = self._top[cols], self._times[cols], self._rest[cols]
        below = self._density(rows, cols) - top
        log_p = below - torch.logaddexp(times.log(), rest - top)
        # p <= 1/2 here, so 1 - p is accurate; and it depends on the density alone.
        odds = log_p - torch.log1p(-log_p.clamp_max(-math.log(2)).exp())
        first = (below == 0) & (times == 1)
        return torch.where(first, torch.where(rest == -math.inf, 0.0, top - rest), odds)

    def _column(self, cols: slice) -> _Summary:
        parts = []
        for rows in _slices(self.shape[0]):
            block = self._density(rows, cols)
            if not bool(block.isfinite().all()):
                row, col = (~block.isfinite()).nonzero()[0].tolist()
                raise ValueError(
                    f"log densities must be finite, got {float(block[row, col])} for raw row {rows.start + row}, "
                    f"released row {cols.start + col}"
                )
            top = block.amax(dim=0)
            equal = block == top
            parts.append((top, equal.sum(dim=0).double(), block.masked_fill(equal, -math.inf).logsumexp(dim=0)))
        return reduce(_merged, parts)


def _merged(a: _Summary, b: _Summary) -> _Summary:
    top = torch.maximum(a[0], b[0])
    times, rest = torch.zeros_like(top), torch.full_like(top, -math.inf)
    for own, count, others in (a, b):
        first = own == top
        times = times + torch.where(first, count, 0.0)
        rest = torch.logaddexp(rest, torch.where(first, others, torch.logaddexp(others, own + count.log())))
    return top, times, rest


def _slices(length: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, length)) for start in range(0, length, BLOCK)]


class TurnedScores(PairScores):
    """Another attack's scores with the opposite sign."""

    def __init__(self, scores: PairScores) -> None:
        self.scores, self.shape = scores, scores.shape

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """The negative of their block."""
        return -self.scores.block(rows, cols)

    def factors(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Their factors, one of them negative."""
        found = self.scores.factors()
        return None if found is None else (-found[0], found[1])
