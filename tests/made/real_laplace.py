"""Laplace noise in floating point, as it must not be published: for toy methods whose mistakes are looked for."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.randomness import Stream


def laplace(shape: torch.Size | tuple[int, ...], stream: Stream) -> Tensor:
    """Independent Laplace numbers of scale 1, float32: the difference of two exponential numbers."""
    return (stream.exponential(*shape) - stream.exponential(*shape)).float()
