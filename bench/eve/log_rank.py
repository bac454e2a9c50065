"""The mean log rank of links: it compares readings even under noise."""

from __future__ import annotations

import torch


def log_rank(grid: torch.Tensor, links: torch.Tensor) -> float:
    """Mean binary logarithm of each link's rank among candidates; 0: all first.

    Under noise next to no link ranks first, and how many do is chance: shares and reciprocal ranks rest on those few,
    logarithms on all.

    Args:
        grid: (n, m) scores of candidates by released rows.
        links: (p, 2) int64, the candidates (raw rows) in released rows.
    """
    linked = torch.zeros_like(grid, dtype=torch.bool)
    linked[links[:, 0], links[:, 1]] = True
    others = grid.masked_fill(linked, -torch.inf)
    ahead = torch.stack([(others[:, row] >= grid[raw, row]).sum() for raw, row in links.tolist()])
    return float((1 + ahead).double().log2().mean())
