"""Blur: every image through a Gaussian filter. A reference row: what people do who want faces or names out of sight.

Source: torchvision's `gaussian_blur` (edges mirrored), cut off at four deviations. The deviation is stated for a longer
side of 64 pixels and grows with it, so that a figure means the same at any size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.randomness import Secret
from bench.types import Dataset, Key, Method, NotApplicable, Release, Scheme, State, by_blocks, paired
from bench.validation import positive_and_finite

SIDE = 64
REACH = 4.0
ROWS = 256


@dataclass(frozen=True)
class Blur(Method):
    """Gaussian blur, without a key and without a guarantee.

    Args:
        sigma: Standard deviation in pixels of an image with a longer side of 64 pixels.
    """

    name: ClassVar[str] = "blur"
    source: ClassVar[str] = "reference row: Gaussian filter"
    needs_public: ClassVar[bool] = False
    unlearned: ClassVar[frozenset[str]] = frozenset({"sigma"})

    sigma: float = 2.0

    def __post_init__(self) -> None:
        positive_and_finite(sigma=self.sigma)

    def fit(self, public: Dataset, seed: int) -> BlurScheme:
        """Nothing to learn. Raises NotApplicable for tables."""
        if public.samples.ndim != 4:
            raise NotApplicable(f"blur smooths images: the columns of {public.name}, a table, have no neighbours")
        return self.load({})

    def load(self, state: State) -> BlurScheme:
        """The scheme, which has no state."""
        return BlurScheme(self.sigma)


@dataclass(frozen=True)
class BlurScheme(Scheme):
    """Has one key only."""

    sigma: float

    def sample_key(self, secret: Secret) -> BlurKey:
        """The key, which holds no secret."""
        return BlurKey(self.sigma)

    def load_key(self, state: State) -> BlurKey:
        """The key."""
        return BlurKey(self.sigma)


@dataclass(frozen=True)
class BlurKey(Key):
    """Blurs by `sigma` pixels of 64."""

    sigma: float

    def release(self, private: Dataset) -> Release:
        """Blurred images (n, c, h, w), labels as they are."""
        return paired(self.query(private.samples), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Blurred images (n, c, h, w)."""
        # Takes seconds to import: only where something is blurred.
        from torchvision.transforms.v2.functional import gaussian_blur

        h, w = samples.shape[2:]
        sigma = self.sigma * max(h, w) / SIDE
        # A mirrored edge holds no more than the image less one pixel.
        reach = [min(math.ceil(REACH * sigma), side - 1) for side in (w, h)]
        sizes = [2 * pixels + 1 for pixels in reach]
        return by_blocks(samples, lambda rows: gaussian_blur(rows, sizes, [sigma, sigma]), ROWS)

    def state(self) -> State:
        """Nothing secret."""
        return {}
