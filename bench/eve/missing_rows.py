"""Missing rows, identified by their sum."""

from __future__ import annotations

import scipy
import torch

from bench.memory.rows import in_blocks, rows_at
from bench.seeds import generator

EQUATIONS = 512


def summing_to(rows: torch.Tensor, among: torch.Tensor, total: torch.Tensor, many: int) -> torch.Tensor:
    """Ascending numbers of `many` rows whose sum is nearest to `total` (d,).

    Args:
        rows: (n, d) float64.
        among: (s,) int64, ascending: the rows that it may be.
        total: (d,) float64.
        many: The number of missing rows.
    """
    rows = rows_at(rows, among)
    mean, d = rows.mean(dim=0), rows.shape[1]
    mixing = None
    if d > EQUATIONS:  # sums of equations hold too
        mixing = torch.randn(EQUATIONS, d, generator=generator(0), dtype=torch.float64).to(rows.device)
    goal = total - many * mean

    def mixed(numbers: torch.Tensor) -> torch.Tensor:
        return numbers if mixing is None else mixing @ numbers

    equations, goal = torch.cat([mixed((part - mean).T) for _, part in in_blocks(rows)], dim=1), mixed(goal)
    size = equations.square().sum(dim=0).mean().sqrt()
    equations = torch.cat((equations, size.expand(1, len(rows))))  # as many as are missing
    goal = torch.cat((goal, (size * many)[None]))
    weights, _ = scipy.optimize.nnls(equations.cpu().numpy(), goal.cpu().numpy())
    heaviest = torch.from_numpy(weights).argsort(descending=True, stable=True)[:many].sort().values
    return among[heaviest.to(among.device)]
