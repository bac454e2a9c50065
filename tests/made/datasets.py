"""Data sets of a few lines: given rows without labels, and uniform random rows that all have one finding."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.types import Dataset


def unlabelled(samples: Tensor) -> Dataset:
    """Rows without people and labels."""
    return Dataset("made", samples, None, None, (), False, True)


def uniform(*shape: int, seed: int = 0) -> Dataset:
    """Random numbers in [0, 1] of shape (n, c, h, w) or (n, d); every row has the one finding."""
    samples: Tensor = torch.rand(shape, generator=torch.Generator().manual_seed(seed))
    return Dataset("made", samples, torch.ones(len(samples), 1), None, ("finding",), False, True)
