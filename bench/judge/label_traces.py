"""Whether released labels tell of a raw row what its raw labels do not: rows can be hidden in their digits."""

from __future__ import annotations

import torch

from bench.seeds import generator

DIRECTIONS = 8
DRAWS = 9999
AT_ONCE = 500
RIDGE = 0.1


def label_traces(raw: torch.Tensor, labels: torch.Tensor, released: torch.Tensor, seed: int) -> float:
    """p under chance of what released labels tell of the raw rows, beyond the raw labels.

    A ridge regression from the digits of half of the released labels to the raw rows is tried on the other half; chance
    exchanges raw rows of equal raw labels, so that p is exact. 1 where labels are the same for all of them.

    Args:
        raw: (p, d) float32, the raw row behind each released row.
        labels: (p, k) its labels.
        released: (p, k') float32 released labels.
        seed: For halves and exchanges.
    """
    bits = torch.nan_to_num(labels, nan=-1.0)
    _, kind = torch.unique(bits, dim=0, return_inverse=True)
    digits = _within(_digits(released), kind)
    digits = digits[:, digits.abs().amax(dim=0) > 0]
    if not digits.shape[1]:
        return 1.0
    digits = digits / digits.std(dim=0)
    random = generator(seed)
    half = torch.randperm(len(raw), generator=random)
    train, test = half[::2], half[1::2]
    rows = _within(raw, kind)
    _, deviations, directions = torch.linalg.svd(rows[train], full_matrices=False)
    target = rows @ (directions[:DIRECTIONS].T / deviations[:DIRECTIONS].clamp_min(1e-12))
    inner = digits[train].T @ digits[train]
    inner.diagonal().add_(RIDGE * inner.diagonal().mean())
    guess = digits[test] @ torch.linalg.solve(inner, digits[train].T @ target[train])
    told = kind[test]
    own, found = float((guess * target[test]).sum()), 0
    order = told.argsort(stable=True)
    for start in range(0, DRAWS, AT_ONCE):
        many = min(AT_ONCE, DRAWS - start)
        keys = torch.rand(many, len(test), generator=random) + told[order]  # sorted, they are exchanged within a kind
        places = order[keys.argsort(dim=1)]
        sums = torch.einsum("ik,bik->b", guess[order], target[test][places])
        found += int((sums >= own).sum())
    return (1 + found) / (1 + DRAWS)


def _digits(labels: torch.Tensor) -> torch.Tensor:
    """Values and bytes (p, 5 k) float32 of labels."""
    pattern = labels.contiguous().view(torch.int32)
    bytes_ = [((pattern >> shift) & 255).float() for shift in (0, 8, 16, 24)]
    return torch.cat([torch.nan_to_num(labels, nan=-1.0), *bytes_], dim=1)


def _within(rows: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    """Rows less the mean of their kind."""
    many = int(kind.max()) + 1
    sums = torch.zeros(many, rows.shape[1]).index_add_(0, kind, rows)
    counts = torch.bincount(kind, minlength=many)[:, None]
    left = rows - (sums / counts)[kind]
    return torch.where(left.abs() > 1e-6 * rows.abs().amax().clamp_min(1e-30), left, 0.0)
