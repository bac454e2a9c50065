"""Posterior odds as pair scores: how much likelier one candidate is than all others together, for every released row.

With L[i, j] the log density of released row j given candidate i, and every candidate as likely as any other beforehand,
the posterior is p[i, j] = exp(L[i, j]) / sum over k of exp(L[k, j]): normalised within a column, so that what makes a
released row common or rare by itself drops out, and scores of different columns compare. The score is log p - log(1 -
p), the log odds. It orders pairs as p does, but where p rounds to 1 it still tells how clear the case is: guesses start
with the clearest instead of among ties.

Equal densities within a column give equal scores, all of them where a column says nothing. With a single candidate
nothing is to be told apart, and all scores are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import torch

from bench.types import PairScores

KEPT = 2**30
"""Bytes of log densities that are kept; larger grids are computed again whenever a block is read."""
BLOCK = 1024

Density = Callable[[slice, slice], torch.Tensor]
_Summary = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Of each column, or a part of it: the largest log density, how often it occurs, and the log of the others' sum."""


class PosteriorScores(PairScores):
    """Log odds of the posterior, float64.

    Args:
        density: Gives log densities (rows, cols) of a block, float64, up to a number for each column; a pair has the
            same bits in every block, on whichever device.
        shape: (n, m).
        kept: Keep the log densities of grids of at most so many bytes.

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
        # Here p is at most a half, so that nothing is lost in 1 - p; and it is a function of the density alone.
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
