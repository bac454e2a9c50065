"""Small images for the tests of feature extractors."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.seeds import generator
from bench.types import Dataset
from made.datasets import unlabelled


def images(rows: int = 24, *, side: int = 8, channels: int = 1, seed: int = 0) -> Dataset:
    """Random images, brighter where their one finding is present, which it is in every second."""
    present = (torch.arange(rows) % 2).float()
    samples: Tensor = torch.rand((rows, channels, side, side), generator=generator(seed))
    samples = 0.5 * samples + 0.4 * present[:, None, None, None]
    return Dataset("made", samples, present[:, None], torch.arange(rows), ("bright",), False, True)


def table() -> Dataset:
    """Rows that are vectors already."""
    return unlabelled(torch.rand((6, 4), generator=generator(0)))
