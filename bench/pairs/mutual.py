"""The pairs of a grid of scores that are each other's best, found block by block."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bench.types import PairScores

BLOCK = 1024


@dataclass(frozen=True, eq=False)
class Best:
    """Of each released row: the best raw row (m,) int64 and by how much it leads the second (m,) float64.

    `mutual` (m,) bool: of that raw row, this released row is the best too. The first of several equal rows counts.
    """

    raw: torch.Tensor
    lead: torch.Tensor
    mutual: torch.Tensor


def best(scores: PairScores) -> Best:
    """Best raw rows of all released rows; no more than a block of scores is held at a time."""
    n, m = scores.shape
    raw, lead = [], []
    row_top: list[torch.Tensor] = []
    row_at: list[torch.Tensor] = []
    for left in range(0, m, BLOCK):
        cols = slice(left, min(left + BLOCK, m))
        tops, ats = [], []
        for low in range(0, n, BLOCK):
            part = scores.block(slice(low, min(low + BLOCK, n)), cols).double()
            value, at = part.topk(min(2, len(part)), dim=0)
            tops.append(value)
            ats.append(at + low)
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
        raw.append(torch.cat(ats).gather(0, place[:1])[0])
        lead.append(value[0] - value[-1])
    found = torch.cat(raw)
    mutual = torch.cat(row_at)[found] == torch.arange(m, device=found.device)
    return Best(found, torch.cat(lead), mutual)
