"""Pixels: an image as the vector of its numbers.

Source: Newton, Sweeney and Malin 2005, k-Same-Pixel. Difference: nothing is aligned or cropped first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.contract.extractor import Embedding, Extractor, check_images, check_shape
from bench.types import Dataset, State


@dataclass(frozen=True)
class Pixels(Extractor):
    """Every pixel is a dimension; nothing is learned."""

    name: ClassVar[str] = "pixels"
    source: ClassVar[str] = "Newton et al. 2005 (k-Same-Pixel)"
    cached: ClassVar[bool] = False
    needs_public: ClassVar[bool] = False

    def fit(self, public: Dataset, seed: int) -> FlatPixels:
        """See `Extractor.fit`."""
        return FlatPixels(check_images(public, self.name))

    def load(self, state: State) -> FlatPixels:
        """See `Extractor.load`."""
        c, h, w = state["shape"].tolist()
        return FlatPixels((c, h, w))


@dataclass(frozen=True)
class FlatPixels(Embedding):
    """Images of `shape` (c, h, w), flattened."""

    shape: tuple[int, int, int]

    def embed(self, samples: torch.Tensor) -> torch.Tensor:
        """(n, c, h, w) to (n, c h w)."""
        check_shape(samples, self.shape, "pixels")
        return samples.flatten(1)

    def state(self) -> State:
        """The shape."""
        return {"shape": torch.tensor(self.shape)}
