"""Blur: every image through a Gaussian filter. A reference row.

People blur faces and names to hide them. Source: torchvision's `gaussian_blur` (edges mirrored), cut off at four
deviations. The deviation is stated for a longer side of 64 pixels and grows with it, so that a figure means the same at
any size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.types import Dataset, Keyless, KeylessScheme, NotApplicable, by_blocks
from bench.validation import positive_and_finite

SIDE = 64
REACH = 4.0
ROWS = 256


@dataclass(frozen=True)
class Blur(Keyless):
    """Gaussian blur, without a key and without a guarantee.

    Args:
        sigma: Standard deviation in pixels of an image with a longer side of 64 pixels.
    """

    name: ClassVar[str] = "blur"
    raw_like: ClassVar[bool] = True
    source: ClassVar[str] = "reference row: Gaussian filter"
    unlearned: ClassVar[frozenset[str]] = frozenset({"sigma"})

    sigma: float = 2.0

    def __post_init__(self) -> None:
        positive_and_finite(sigma=self.sigma)

    def fit(self, public: Dataset, seed: int) -> KeylessScheme:
        """Nothing to learn. Raises NotApplicable for tables."""
        if public.samples.ndim != 4:
            raise NotApplicable(f"blur smooths images: the columns of {public.name}, a table, have no neighbours")
        return super().fit(public, seed)

    def transform(self, samples: torch.Tensor) -> torch.Tensor:
        """Blurred images (n, c, h, w)."""
        # Takes seconds to import: only if something is blurred.
        from torchvision.transforms.v2.functional import gaussian_blur

        h, w = samples.shape[2:]
        sigma = self.sigma * max(h, w) / SIDE
        # A mirrored edge holds no more than the image less one pixel.
        reach = [min(math.ceil(REACH * sigma), side - 1) for side in (w, h)]
        sizes = [2 * pixels + 1 for pixels in reach]
        return by_blocks(samples, lambda rows: gaussian_blur(rows, sizes, [sigma, sigma]), ROWS)
