"""Noise that a key adds: drawn from a seed of its own for every call, so that a scheme never uses noise twice.

A key belongs to one scheme. The same key under another one (another scale, another code) draws the same numbers for the
same rows: who published both releases would publish their difference, in which noise cancels. Claims cover one release.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from bench.seeds import derive


def content_seed(seed: int, purpose: str, samples: Tensor) -> int:
    """A seed for noise on `samples`: the same rows give the same one, any other rows or purpose another.

    Noise that depended on the key alone would cancel out in the difference of two releases.
    """
    rows = samples.detach().cpu().contiguous()
    digest = hashlib.sha256(rows.numpy().data)
    return derive(seed, purpose, str(tuple(rows.shape)), digest.hexdigest())


def laplace(shape: torch.Size | tuple[int, ...], source: torch.Generator) -> Tensor:
    """Independent Laplace numbers of scale 1, float32 on the generator's device.

    The difference of two exponential numbers, which has neither the holes nor the infinities of a logarithm of a
    uniform one.
    """
    up, down = (torch.empty(shape, device=source.device).exponential_(generator=source) for _ in range(2))
    return up - down
