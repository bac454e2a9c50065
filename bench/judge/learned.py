"""What the declared links teach: a linear map from released rows back to raw ones, tried where no link leads."""

from __future__ import annotations

import torch

DIRECTIONS = 24
RIDGE = 0.1


def recovered(released: torch.Tensor, raw: torch.Tensor, pairs: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    """Cosines (m, t) of what a ridge regression makes of each released row with the candidates.

    Args:
        released: (m, q) float32.
        raw: (n, d) float32.
        pairs: (p, 2) int64 raw and released row, to learn from.
        candidates: (t, d) float32.
    """
    middle = raw.mean(dim=0)
    known = raw[pairs[:, 0]] - middle
    _, deviations, directions = torch.linalg.svd(known, full_matrices=False)
    kept = min(DIRECTIONS, int((deviations > 1e-6 * deviations[0].clamp_min(1e-30)).sum()))
    directions = directions[:kept].T / deviations[:kept] * len(known) ** 0.5
    rows = released - released[pairs[:, 1]].mean(dim=0)
    inner = rows[pairs[:, 1]] @ rows[pairs[:, 1]].T
    inner.diagonal().add_(RIDGE * inner.diagonal().mean().clamp_min(1e-30))
    solved = torch.linalg.solve(inner, known @ directions)
    guess = rows @ (rows[pairs[:, 1]].T @ solved)
    return (
        torch.nn.functional.normalize(guess, dim=1)
        @ torch.nn.functional.normalize((candidates - middle) @ directions, dim=1).T
    )
