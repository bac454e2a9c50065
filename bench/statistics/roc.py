"""Areas under the ROC curve, counted in integers, under any weights of the rows."""

from __future__ import annotations

import math

import torch

NUMBERS = 2_000_000  # of a block of weights: 16 MB


def auc(scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None = None) -> float | None:
    """Area under the ROC curve of one finding, unknown labels (NaN) left out; None where only one class is left.

    `weights` (n,) int64 says how often each row counts; None stands for once. Raises ValueError as `aucs`.
    """
    weights = torch.ones(len(labels), dtype=torch.int64) if weights is None else weights
    value = float(aucs(scores, labels, weights[None]))
    return None if math.isnan(value) else value


def aucs(scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The same under each of several sets of weights (b, n) int64, (b,) float64; NaN where only one class is left.

    Counted in integers (Mann and Whitney 1947): every positive row wins over the negative rows below it and half wins
    over those it ties with. Rows are ranked once for all weights.

    Raises:
        ValueError: Labels other than 1, 0 and NaN, or scores that are not finite.
    """
    known = ~labels.isnan()
    truth, scores = labels[known], scores[known]
    if not bool(((truth == 0) | (truth == 1)).all()) or not bool(scores.isfinite().all()):
        raise ValueError("expected labels that are 1, 0 or NaN, and finite scores for the known ones")
    places, positive = known.nonzero()[:, 0], truth == 1
    tied = torch.unique(scores, return_inverse=True)[1]
    levels = int(tied.amax()) + 1 if len(tied) else 1
    found = torch.empty(len(weights), dtype=torch.float64)
    for block in torch.split(torch.arange(len(weights)), max(1, NUMBERS // max(1, len(places)))):
        times = weights[block][:, places]
        yes, no = (
            times.new_zeros(len(block), levels).index_add_(1, tied[side], times[:, side])
            for side in (positive, ~positive)
        )
        below = no.cumsum(dim=1)  # and tied
        wins = (yes * (2 * below - no)).sum(dim=1)
        found[block] = wins.double() / (2 * yes.sum(dim=1) * below[:, -1]).double()
    return found
