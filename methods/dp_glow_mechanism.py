"""The noise of DP-GLOW: Laplace noise between two clips on the latent of a flow. Sources as in `methods.dp_glow`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bench.nets.flow import decoded, encoded
from bench.nets.glow import Glow
from bench.seeds import generator
from bench.types import Dataset, Mechanism, Release

OUTSIDE = 1.02  # a witness's code in units of the clip, so that rounding leaves it on the clip's corner


@dataclass(frozen=True, eq=False)
class ClippedLatent(Mechanism):
    """Laplace noise on clipped latents.

    Args:
        flow: In evaluation mode.
        centre, half: (d,) float64; the clip, and the fence, is centre +- half.
        laplace: (d,) float64, the noise's scale.
    """

    flow: Glow
    centre: Tensor
    half: Tensor
    laplace: Tensor

    @property
    def scale(self) -> Tensor:
        """(d,) float64: 0 where an element is the same in all training images."""
        return self.laplace

    @property
    def fence(self) -> tuple[Tensor, Tensor]:
        """(d,) float64 each: the clip."""
        return self.centre - self.half, self.centre + self.half

    def locate(self, data: Dataset) -> Tensor:
        """(n, d) float64: clipped latents."""
        return self.clip(encoded(self.flow, data.samples).double())

    def observe(self, release: Release) -> Tensor:
        """(m, d) float64: the latents of released images, within the fence however they were rounded."""
        return self.clip(encoded(self.flow, release.samples).double())

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """The two ends of three diagonals of the clip: all low and all high, and two with random signs.

        They are what the flow decodes there: rows of real numbers, not all in [0, 1].
        """
        signs = torch.randn(2, len(self.half), generator=generator(0)).sign().to(self.half)
        diagonals = OUTSIDE * self.half * torch.cat((torch.ones_like(signs[:1]), signs))
        ends = [decoded(self.flow, (self.centre + side * diagonals).float()) for side in (-1, 1)]
        first = like.take(torch.zeros(1, dtype=torch.int64, device=like.samples.device))
        low, high = ([replace(first, samples=row[None]) for row in end] for end in ends)
        return list(zip(low, high, strict=True))

    def clip(self, code: Tensor) -> Tensor:
        """Latents (n, d) within the fence."""
        return torch.clamp(code, *self.fence)
