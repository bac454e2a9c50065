"""Whether two sets of rows pair off: each row of one set much nearer to a row of the other than to its own set."""

from __future__ import annotations

import torch

from bench.seeds import generator

DRAWS = 9999


def mixing(a: torch.Tensor, b: torch.Tensor, seed: int) -> tuple[float, float, float]:
    """Share of rows whose nearest row is of the other set; p of a share so high, and of one so low, under chance.

    Chance exchanges rows between the sets. Two draws from one distribution mix by chance; sets that hold the same rows
    pair off (high), sets from two distributions keep apart (low). Of rows equally near one is chosen at random.

    Args:
        a, b: (n, d) and (m, d) float32.
        seed: For exchanges, and for rows equally near.
    """
    random = generator(seed)
    rows, first = torch.cat((a, b)), torch.arange(len(a) + len(b)) < len(a)
    order = torch.randperm(len(rows), generator=random)
    rows, first = rows[order], first[order]
    rows = rows - rows.mean(dim=0)
    distance = torch.cdist(rows, rows)
    distance.fill_diagonal_(torch.inf)
    near = distance.argmin(dim=1)
    own = int((first != first[near]).sum())
    draws = torch.stack([_crossing(first[torch.randperm(len(rows), generator=random)], near) for _ in range(DRAWS)])
    high, low = (int(part.sum()) for part in (draws >= own, draws <= own))
    return own / len(rows), (1 + high) / (1 + DRAWS), (1 + low) / (1 + DRAWS)


def _crossing(first: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
    return (first != first[near]).sum()
