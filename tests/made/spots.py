"""Small images of 4 x 4 spots, each of a contrast of its own."""

from __future__ import annotations

import torch

from bench.types import Dataset
from made.datasets import unlabelled


def images(n: int = 64, side: int = 16, seed: int = 0) -> Dataset:
    source = torch.Generator().manual_seed(seed)
    contrast = torch.rand(n, 1, 4, 4, generator=source).repeat_interleave(side // 4, 2).repeat_interleave(side // 4, 3)
    samples = 0.5 + contrast * (torch.rand(n, 1, side, side, generator=source) - 0.5)
    return unlabelled(samples)
