"""Eve's first guess for every released row: the raw row that she scores highest."""

from __future__ import annotations

import torch

from bench.pairs.blocks import blocks
from bench.types import PairScores

BLOCK = 1024


def first_guesses(scores: PairScores, *, block: int = BLOCK) -> torch.Tensor:
    """(m,) int64 on the CPU: the best-scored raw row of each released row; of equal ones the first.

    Candidates stand in a secret random order, so that the first of equal ones is any of them.

    Args:
        scores: n raw by m released rows.
        block: Side of the blocks; the result does not depend on it.
    """
    m = scores.shape[1]
    best, rows = torch.full((m,), -torch.inf, dtype=torch.float64), torch.zeros(m, dtype=torch.int64)
    for band, cols in blocks(scores.shape, block):
        found, at = scores.block(band, cols).detach().max(dim=0)
        values, places = found.to("cpu", torch.float64), at.cpu() + band.start
        # Blocks of one column band come from the top down, or in any order: of equal scores the lower row stays.
        better = (values > best[cols]) | ((values == best[cols]) & (places < rows[cols]))
        best[cols] = torch.where(better, values, best[cols])
        rows[cols] = torch.where(better, places, rows[cols])
    return rows
