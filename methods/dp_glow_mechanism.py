"""DP-GLOW's noise: Laplace noise between two clips on a flow's latent.

Sources as in `methods.dp_glow`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from bench.nets import glow, normalising_flow
from bench.owner.grid_noise import above
from bench.randomness import Grid, Stream, no_nan
from bench.seeds import generator
from bench.types import Dataset, Mechanism, Release

FINEST_OF_CLIP, FINEST_OF_NOISE = 2.0**-12, 2.0**-16
MOST_OF_NOISE, FINEST = 40, -50  # logarithms of the noise's scale in steps at most, and of the least step
OUTSIDE = 1.02  # a witness's code in units of the clip, so that rounding leaves it on the clip's corner


@dataclass(frozen=True, eq=False)
class ClippedLatent(Mechanism):
    """Laplace noise on clipped latents.

    The grid counts in halves of the clip's width, element by element, so that the clip's ends are points of it.

    Args:
        flow: In evaluation mode.
        centre, half: (d,) float64; the clip, and the fence, is centre +- half.
        relative: The noise's scale in units of `half`, the same for every element; 0 for no noise.
    """

    flow: glow.Glow
    centre: torch.Tensor
    half: torch.Tensor
    relative: float

    @property
    def grid(self) -> Grid:
        """The grid of the noise, in units of `half`.

        Its step is a 4,096th of `half`, or a 65,536th of the noise's scale if that is finer. Coarser for noise of more
        than 2^28 times the clip, which has 2^40 steps at most; and no finer than float64 is.
        """
        wanted = math.floor(math.log2(min(FINEST_OF_CLIP, self.relative * FINEST_OF_NOISE)))
        return Grid(2.0 ** min(0, max(wanted, math.ceil(math.log2(self.relative)) - MOST_OF_NOISE, FINEST)))

    @property
    def scale(self) -> torch.Tensor:
        """(d,) float64: 0 if all training images share the element."""
        return self.half * self.relative

    @property
    def fence(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(d,) float64 each: the clip."""
        return self.centre - self.half, self.centre + self.half

    def locate(self, data: Dataset) -> torch.Tensor:
        """(n, d) float64: clipped latents, on the grid."""
        return self._values(self.places(normalising_flow.encoded(self.flow, data.samples).double()))

    def observe(self, release: Release) -> torch.Tensor:
        """(m, d) float64: the released images' latents, kept within the fence."""
        return self.clip(normalising_flow.encoded(self.flow, release.samples).double())

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """The ends of three diagonals of the clip.

        One runs from all low to all high, two have random signs. They are what the flow decodes there: rows of real
        numbers, not all in [0, 1].
        """
        signs = torch.randn(2, len(self.half), generator=generator(0)).sign().to(self.half)
        diagonals = OUTSIDE * self.half * torch.cat((torch.ones_like(signs[:1]), signs))
        ends = [normalising_flow.decoded(self.flow, (self.centre + side * diagonals).float()) for side in (-1, 1)]
        first = like.take(torch.zeros(1, dtype=torch.int64, device=like.samples.device))
        low, high = ([replace(first, samples=row[None]) for row in end] for end in ends)
        return list(zip(low, high, strict=True))

    def places(self, code: torch.Tensor) -> torch.Tensor:
        """int64 (n, d): clipped latents in steps from the centre.

        0 if the clip has no width. Raises ValueError for NaN.
        """
        ends = 1 / self.grid.step
        width = torch.where(self.half > 0, self.half, 1.0)
        return ((self.clip(no_nan(code)) - self.centre) / width * ends).round().clamp(-ends, ends).long()

    def noisy(self, code: torch.Tensor, stream: Stream) -> torch.Tensor:
        """Latents (n, d) float64, clipped before and after noise on the grid."""
        places, ends = self.places(code), round(1 / self.grid.step)
        noise = self.grid.laplace(stream, self.relative, tuple(places.shape)).to(places.device)
        return self._values((places + noise).clamp(-ends, ends))

    @property
    def bound(self) -> float:
        """Epsilon of one image: all elements move by the clip's width."""
        steps = int((self.half > 0).sum()) * 2 * round(1 / self.grid.step)
        return above(steps / self.grid.steps(self.relative))

    def _values(self, places: torch.Tensor) -> torch.Tensor:
        return self.centre + self.half * (places.double() * self.grid.step)

    def clip(self, code: torch.Tensor) -> torch.Tensor:
        """Latents (n, d) within the fence."""
        return torch.clamp(code, *self.fence)
