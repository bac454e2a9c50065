"""Noise mechanisms as Eve knows them, for likelihood attacks and audits.

A released row is decode(fence(locate(raw row) + noise)): the raw row's code, bounded first, so that two rows cannot
differ by more than the sensitivity; then independent Laplace noise on every element; then, in some methods, a second
bound, the fence, whose ends collect the tails.
"""

from __future__ import annotations

__figures__ = True

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch

from bench.contract.dataset import Dataset, Release
from bench.pair_distances import pair_distances

EDGE = 1e-3


class Mechanism(ABC):
    """Laplace noise on a code of width d. Everything here is public.

    `exact` says that `observe` gives the noisy code itself, up to rounding; otherwise it is only close to it (a decoder
    that cannot be inverted). `rowwise` says that a row's release depends on that row alone.
    """

    exact: bool = True
    rowwise: bool = True

    @property
    @abstractmethod
    def scale(self) -> torch.Tensor:
        """Laplace scales b (d,) float64; 0 if an element never varies."""

    @property
    def fence(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Bounds (d,) of the noisy code, float64; None (the default) if unbounded."""
        return None

    @abstractmethod
    def locate(self, data: Dataset) -> torch.Tensor:
        """Bounded codes (n, d) float64 of raw rows, without noise."""

    @abstractmethod
    def observe(self, release: Release) -> torch.Tensor:
        """Noisy codes (m, d) float64 of released rows, in code units.

        Labels of the release, where there are any, have the public findings as columns, NaN where nothing is known:
        the caller brings those of other findings into that form first, by name.
        """

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """Pairs of inputs with codes as far apart as possible; default none.

        `like` holds rows of the kind that the scheme reads, for shapes, labels and ordinary examples.
        """
        return ()

    def log_density(self, located: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        """Log densities (n, m) float64 of observed rows at located ones.

        Elements that the fence stopped contribute the mass of the tail beyond it; those of scale 0, nothing. A pair has
        the same bits whatever it is computed with.
        """
        varies = self.scale > 0
        scale = self.scale[varies]
        apart = pair_distances(located[:, varies].double() / scale, observed[:, varies].double() / scale, 1)
        # `locate` stays inside the fence, where a tail is exp(-distance) / 2: the density but for the scale.
        visible = ~self.stopped(observed)[:, varies]
        return -(apart + math.log(2) * len(scale) + (visible * scale.log()).sum(dim=1))

    def noise(self, located: torch.Tensor, observed: torch.Tensor) -> torch.Tensor:
        """Noise (p, d) float64 in units of the scale; NaN if invisible.

        Standard Laplace numbers if the mechanism is what it says, except that with a fence only those are seen that
        did not reach it.
        """
        hidden = self.stopped(observed) | (self.scale == 0)
        return ((observed.double() - located.double()) / self.scale).masked_fill(hidden, math.nan)

    def stopped(self, observed: torch.Tensor) -> torch.Tensor:
        """(m, d) bool: where the fence stopped the noise.

        Observed codes are known up to rounding: nearer to the fence than a thousandth of the scale, or of the space
        within, counts as stopped.
        """
        if self.fence is None:
            return torch.zeros_like(observed, dtype=torch.bool)
        low, high = self.fence
        margin = EDGE * torch.minimum(self.scale, high - low)
        return (observed <= low + margin) | (observed >= high - margin)
