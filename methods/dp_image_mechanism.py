"""DP-Image's noise: Laplace noise on an autoencoder's code.

Sources as in `methods.dp_image`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from bench.nets import autoencoder
from bench.owner.grid_noise import GridNoise
from bench.types import Dataset, Mechanism, Release


@dataclass(frozen=True, eq=False)
class NoisyCode(Mechanism):
    """Laplace noise on a code; the released image shows it inexactly.

    An attacker can only encode the released image again.

    Args:
        network: In evaluation mode.
        shape: (c, h, w) of the images that it codes.
        mean: (d,) float64, the public mean of the code.
        reach: (d,) float64, how far the clip lets a code lie from the mean; None without a clip.
        gridded: The noise of every element.
    """

    exact = False

    network: autoencoder.Autoencoder
    shape: tuple[int, int, int]
    mean: torch.Tensor
    reach: torch.Tensor | None
    gridded: GridNoise

    @property
    def noise_scale(self) -> float:
        """Laplace scale b of every element."""
        return self.gridded.scale

    @property
    def scale(self) -> torch.Tensor:
        """(d,) float64: the same for every element."""
        return torch.full_like(self.mean, self.noise_scale)

    def encode(self, samples: torch.Tensor) -> torch.Tensor:
        """Codes (n, d) float64 of images (n, c, h, w).

        They are clipped if there is a clip. Raises ValueError for images of another shape.
        """
        if tuple(samples.shape[1:]) != self.shape:
            raise ValueError(f"this scheme encodes images of shape {self.shape}, got {tuple(samples.shape[1:])}")
        codes = autoencoder.encoded(self.network, samples)
        return codes if self.reach is None else codes.clamp(self.mean - self.reach, self.mean + self.reach)

    def locate(self, data: Dataset) -> torch.Tensor:
        """(n, d) float64: codes on the grid, within the clip if any."""
        return self.gridded.on_grid(self.encode(data.samples))

    def observe(self, release: Release) -> torch.Tensor:
        """(m, d) float64: unclipped codes of released images, near the noisy ones."""
        return autoencoder.encoded(self.network, release.samples)

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """The outermost row of `like` in code space, and its furthest row.

        The first is furthest from the mean. The worst case, two images at opposite corners of the clip, is not known to
        exist.
        """
        codes = self.locate(like)
        first = torch.cdist(codes, codes.mean(dim=0, keepdim=True), p=1).argmax(dim=0)
        second = torch.cdist(codes, codes[first], p=1).argmax(dim=0)
        one = like.take(first)
        return ((one, replace(one, samples=like.samples[second])),)
