"""Mixtures taken apart: candidates and weights that give a row's absolute values.

Source: sparse phase retrieval without negative weights, by alternating between signs and weights (Gerchberg and Saxton
1972; Netrapalli et al. 2013). A ridge regression on all candidates names a shortlist, coordinate descent refits it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

RIDGE = 1e-3  # of the mean square of a centred candidate
EXPLAINED = 1e-4  # of a row's length left over: what float32 leaves of an exact fit
HOPELESS = 0.5  # of a row's length left over: no mixture at all, so that starting again is in vain
PROGRESS = 0.995  # a round that leaves more than this share of what was left is the last from its first guess
KEPT = 6
SWEEPS = 24


@dataclass(frozen=True)
class Effort:
    """The effort of a search.

    Args:
        shortlist: Candidates that each regression hands on to the refit.
        rounds: Regressions from each first guess of the signs.
        restarts: Further first guesses for rows that are not explained.
    """

    shortlist: int
    rounds: int
    restarts: int


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The candidates as they may stand in a mixture.

    Args:
        rows: (n, d) float64.
        mean: (d,) float64, of the rows.
        columns: (n, d) float64: weights of a row y above the mean are columns @ y, by ridge regression.
        sizes: (n, d) float64, absolute values, centred by number over the rows, at length one.
    """

    rows: torch.Tensor
    mean: torch.Tensor
    columns: torch.Tensor
    sizes: torch.Tensor


@dataclass(frozen=True, eq=False)
class Explained:
    """Released rows explained by candidates.

    Args:
        chosen: (m, a) int64 candidates, distinct within a row, and their weights (m, a), not negative.
        left: (m,) the share of the length of a row's absolute values that is not explained.
        signed: (m, d) the released absolute values with the signs found.
    """

    chosen: torch.Tensor
    weights: torch.Tensor
    left: torch.Tensor
    signed: torch.Tensor


def explain(dictionary: Dictionary, sizes: torch.Tensor, effort: Effort) -> Explained:
    """The best explanation for each row of absolute values (m, d) float64."""
    length = torch.linalg.vector_norm(sizes, dim=1).clamp_min(1e-300)
    most = min(KEPT, effort.shortlist, len(dictionary.rows))
    best = Explained(
        torch.arange(most, device=sizes.device).repeat(len(sizes), 1),
        sizes.new_zeros(len(sizes), most),
        sizes.new_full((len(sizes),), torch.inf),
        sizes * _signs(dictionary.mean),
    )
    like = sizes @ dictionary.sizes.T if effort.restarts else None
    for start in range(effort.restarts + 1):
        todo = ((best.left > EXPLAINED) & ((best.left < HOPELESS) | (start < 2))).nonzero()[:, 0]
        signed = sizes * _signs(dictionary.mean)
        if start and like is not None:
            if start > like.shape[1]:
                break
            signed = sizes * _signs(dictionary.rows[like.topk(start, dim=1).indices[:, -1]])
        signed, held, before = signed[todo], None, best.left.new_full((len(todo),), torch.inf)
        for _ in range(effort.rounds):
            if not len(todo):
                break
            chosen, weights, signed = _round(dictionary, sizes[todo], signed, held, effort.shortlist, most)
            mixed = (weights[:, None] @ dictionary.rows[chosen])[:, 0]
            left = torch.linalg.vector_norm(sizes[todo] - mixed.abs(), dim=1) / length[todo]
            better = left < best.left[todo]
            now = Explained(chosen, weights, left, signed)
            for name in ("chosen", "weights", "left", "signed"):
                getattr(best, name)[todo[better]] = getattr(now, name)[better]
            going = (left > EXPLAINED) & (left < PROGRESS * before)
            held, before = chosen[going][:, : max(1, most - 2)], left[going]
            todo, signed = todo[going], signed[going]
    return best


def _round(
    dictionary: Dictionary,
    sizes: torch.Tensor,
    signed: torch.Tensor,
    held: torch.Tensor | None,
    shortlist: int,
    most: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One regression and refit: candidates (m, kept), weights, and re-signed sizes."""
    weights = above_mean(dictionary, signed) @ dictionary.columns.T
    if held is not None:
        weights.scatter_(1, held, torch.inf)
    chosen = weights.topk(min(shortlist, weights.shape[1]), dim=1).indices
    start = torch.zeros_like(chosen, dtype=sizes.dtype)
    for times, sweeps in ((2, SWEEPS // 2), (4, SWEEPS)):
        atoms = dictionary.rows[chosen]
        gram = atoms @ atoms.mT
        for _ in range(times):
            start = _non_negative(gram, (atoms @ signed[:, :, None])[:, :, 0], start, sweeps)
            signed = sizes * _signs((start[:, None] @ atoms)[:, 0])
        order = start.argsort(dim=1, descending=True)[:, :most]
        chosen, start = chosen.gather(1, order), start.gather(1, order)
    return chosen, start, signed


def _non_negative(gram: torch.Tensor, target: torch.Tensor, start: torch.Tensor, sweeps: int) -> torch.Tensor:
    """Non-negative least squares: gram (m, a, a), target and start (m, a)."""
    weights = start.clone()
    scale = gram.diagonal(dim1=1, dim2=2).clamp_min(1e-300)
    for _ in range(sweeps):
        for number in range(weights.shape[1]):
            slope = target[:, number] - (gram[:, number] * weights).sum(dim=1)
            weights[:, number] = (weights[:, number] + slope / scale[:, number]).clamp_min(0)
    return weights


def above_mean(dictionary: Dictionary, signed: torch.Tensor) -> torch.Tensor:
    """Rows (m, d) without their part of the mean candidate."""
    part = signed @ dictionary.mean / dictionary.mean.square().sum().clamp_min(1e-300)
    return signed - part[:, None] * dictionary.mean


def _signs(numbers: torch.Tensor) -> torch.Tensor:
    return torch.where(numbers < 0, -1.0, 1.0).to(numbers.dtype)


def build(rows: torch.Tensor) -> Dictionary:
    """The dictionary of the candidates (n, d) float64."""
    mean = rows.mean(dim=0)
    centred = rows - mean
    n, d = rows.shape
    ridge = RIDGE * float(centred.square().sum() / n) or 1.0
    gram = centred @ centred.T if n <= d else centred.T @ centred
    gram.diagonal().add_(ridge)
    columns = torch.linalg.solve(gram, centred) if n <= d else torch.linalg.solve(gram, centred.T).T
    sizes = rows.abs() - rows.abs().mean(dim=0)
    sizes = sizes / torch.linalg.vector_norm(sizes, dim=1, keepdim=True).clamp_min(1e-300)
    return Dictionary(rows, mean, columns.contiguous(), sizes)
