"""Data sets of a few lines: rows without labels, rows with one finding, spots."""

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


def spots(n: int = 64, side: int = 16, seed: int = 0) -> Dataset:
    source = torch.Generator().manual_seed(seed)
    contrast = torch.rand(n, 1, 4, 4, generator=source).repeat_interleave(side // 4, 2).repeat_interleave(side // 4, 3)
    samples = 0.5 + contrast * (torch.rand(n, 1, side, side, generator=source) - 0.5)
    return unlabelled(samples)
