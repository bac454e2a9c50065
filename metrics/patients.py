"""Links between people instead of images."""

from __future__ import annotations

import torch
from torch import Tensor


def patient_links(links: Tensor, subjects: Tensor) -> Tensor:
    """All (raw row, released row) pairs that show the same person, (p', 2) int64.

    Args:
        links: (p, 2) int64, image level.
        subjects: (n,) int64 of the raw rows.

    >>> patient_links(torch.tensor([[0, 1], [1, 0], [2, 2]]), torch.tensor([7, 7, 9])).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]]
    """
    owners = torch.unique(torch.stack((subjects[links[:, 0]], links[:, 1]), dim=1), dim=0)
    order = torch.argsort(subjects, stable=True)
    ranked = subjects[order]
    start = torch.searchsorted(ranked, owners[:, 0].contiguous())
    size = torch.searchsorted(ranked, owners[:, 0].contiguous(), right=True) - start
    first = torch.repeat_interleave(start - size.cumsum(0) + size, size)
    rows = order[first + torch.arange(int(size.sum()))]
    cols = torch.repeat_interleave(owners[:, 1], size)
    pairs: Tensor = torch.unique(torch.stack((rows, cols), dim=1), dim=0)
    return pairs
