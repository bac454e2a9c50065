"""Whom rows show."""

from __future__ import annotations

import torch

from bench.types import Dataset


def persons_of(data: Dataset) -> torch.Tensor:
    """(n,) int64 on the CPU: the person of each row, from 0; every row its own where nobody is known."""
    if data.subjects is None:
        return torch.arange(len(data))
    persons: torch.Tensor = torch.unique(data.subjects.cpu(), return_inverse=True)[1]
    return persons
