"""Where scores fall among the linked scores, found in a few operations through a table of buckets.

A score's bucket is (score - low) * scale, clamped and cut to an integer. Both operations are monotone in IEEE
arithmetic, so that a bucket which no linked score can share gives the place at once, with no analysis of rounding; the
others hold their scores back as doubtful, to be compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

MOST_BUCKETS = 2**21


@dataclass(frozen=True, eq=False)
class Places:
    """Places among q distinct linked scores: 2i strictly below linked score i (and above i - 1), 2i + 1 tied with it.

    Args:
        levels: (q,) float64, the linked scores, ascending, exact.
        dtype: Of the scores to be placed.
        low, scale: A score's bucket is (score - low) * scale, exact numbers in `dtype`.
        codes: (buckets,) int32: the place of every score in the bucket; or -1 - s where scores must be compared
            exactly, s levels being certainly below.
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
        """Which scores (of `dtype`) the table cannot place, bool."""
        return self._codes(scores) < 0

    def place(
        self, scores: torch.Tensor, exact: Callable[..., torch.Tensor]
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Places (int32) of scores of any shape, and where in it the doubtful scores are; all ties are among those.

        `exact` gives the exact scores (float64) there.
        """
        places = self._codes(scores)
        doubtful = (places < 0).nonzero(as_tuple=True)
        truth, below = exact(*doubtful), -1 - places[doubtful]
        ends = torch.nn.functional.pad(self.levels, (0, 1), value=torch.inf)
        below += ends[below] < truth
        # A bucket mostly has one level, so that this was all.
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
    """The table for scores of `dtype` that lie within `error` of the exact scores.

    Args:
        levels: (q,) float64, ascending, distinct; without an error they must be exact in `dtype`.
        dtype: float32 or float64.
        error: How far a score to be placed may be from its exact value.
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
    """`low` and `scale` that keep two buckets free at either end, as exact numbers in `dtype`."""
    span = max(highest - lowest, abs(lowest) * 2.0**-20, torch.finfo(dtype).tiny * 2.0**20)
    low, scale = lowest - span * 3 / buckets, (buckets - 6) / span
    low, scale = torch.tensor([low, scale], dtype=torch.float64).to(dtype).tolist()
    usable = abs(low) < torch.inf and 0 < scale < torch.inf and span < torch.inf
    return (low, scale) if usable else (0.0, 0.0)


def _bucket(scores: torch.Tensor, low: float, scale: float, buckets: int) -> torch.Tensor:
    return scores.sub(low).mul_(scale).clamp_(0, buckets - 1).to(torch.int32)
