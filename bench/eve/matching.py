"""Matchings of two sets by their Gram matrices, and their posteriors."""

from __future__ import annotations

import scipy
import torch

ROUNDS = 20
SINKHORN_ROUNDS = 10


def assign(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The one-to-one matching of largest sum: rows and columns int64, min(n, m)."""
    rows, cols = scipy.optimize.linear_sum_assignment(scores.double().cpu().numpy(), maximize=True)
    return torch.from_numpy(rows).to(scores.device), torch.from_numpy(cols).to(scores.device)


def standardise(scores: torch.Tensor) -> torch.Tensor:
    """Scores (n, m) with mean zero and deviation one in every column."""
    centred = scores - scores.mean(dim=0)
    return centred / centred.std(dim=0, correction=0).clamp_min(torch.finfo(scores.dtype).tiny)


def refine(
    known: torch.Tensor, seen: torch.Tensor, weights: torch.Tensor, start: torch.Tensor, blend: float
) -> torch.Tensor:
    """Scores (n, m) float64, from matching and scoring until the matching stays.

    A candidate's score for a released row is the inner product of their Gram rows, the columns being matched as they
    are now, summed over tokens; to it `blend` times the starting scores are added.

    Args:
        known: (p, n, n) float32, the candidates' Gram matrices, one a token.
        seen: (p, m, m) float32, those of the release.
        weights: (p,) how much each token counts.
        start: (n, m) float64 scores that begin the matching.
    """
    base = standardise(start)
    rows, cols = assign(base)
    seen_before: list[tuple[torch.Tensor, torch.Tensor]] = []
    for _ in range(ROUNDS):
        total = torch.zeros_like(start, dtype=torch.float32)
        for weight, ours, theirs in zip(weights.tolist(), known, seen, strict=True):
            total += weight * (ours[:, rows] @ theirs[cols])
        scores = standardise(total.double()) + blend * base
        seen_before.append((rows, cols))
        rows, cols = assign(scores)
        # A matching seen before is a fixed point, or a cycle that would never end.
        if any(torch.equal(rows, old[0]) and torch.equal(cols, old[1]) for old in seen_before):
            break
    return scores


def log_posterior(scores: torch.Tensor, sharpness: float) -> torch.Tensor:
    """Log match probabilities (n, m): softmax of `sharpness` times scores by column.

    If n = m, every candidate stands in one released row too: rows and columns are normalised in turn (Sinkhorn),
    columns last.
    """
    logits = sharpness * scores
    for _ in range(SINKHORN_ROUNDS if scores.shape[0] == scores.shape[1] else 0):
        logits = logits.log_softmax(dim=0).log_softmax(dim=1)
    return logits.log_softmax(dim=0)


def likelihood(scores: torch.Tensor, links: torch.Tensor, sharpness: float) -> float:
    """Mean log probability of links (p, 2) in nats, by column softmax."""
    logits = sharpness * scores
    return float((logits[links[:, 0], links[:, 1]] - logits.logsumexp(dim=0)[links[:, 1]]).mean())
