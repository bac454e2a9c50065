"""Noise that a key adds: drawn from a seed of its own for every call, so that a scheme never uses noise twice.

A key belongs to one scheme. The same key under another scheme (another scale, another code) draws the same numbers for
the same rows: an owner who published both releases would publish their difference, in which the noise cancels. Claims
cover one release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.seeds import derive, generator
from bench.types import Dataset, Key, Release, State, paired


def content_seed(seed: int, purpose: str, samples: Tensor) -> int:
    """A seed for noise on `samples`: the same rows give the same seed, any other rows or purpose another.

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


@dataclass(frozen=True, eq=False)
class NoiseKey(Key):
    """The key of a method that adds noise to every row: the seed of a noise stream.

    The key, the kind of call and the rows together choose the stream of a call.

    Args:
        blur: Makes released rows of raw rows (n, ...), with noise from the generator.
        seed: Below 2^63.
    """

    blur: Callable[[Tensor, torch.Generator], Tensor]
    seed: int

    def release(self, private: Dataset) -> Release:
        """Rows with fresh noise each. The same rows get the same noise again, any others new noise."""
        return paired(self._call(private.samples, "release"), private.labels)

    def query(self, samples: Tensor, labels: Tensor | None = None) -> Tensor:
        """Rows with fresh noise, never that of the release. Raises ValueError for rows of another shape."""
        return self._call(samples, "query")

    def state(self) -> State:
        """The seed, a single int64."""
        return {"seed": torch.tensor(self.seed, dtype=torch.int64)}

    def _call(self, samples: Tensor, call: str) -> Tensor:
        return self.blur(samples, generator(content_seed(self.seed, call, samples), samples.device))
