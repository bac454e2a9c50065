"""A noise mechanism as Eve knows it: what a likelihood attack reads from, and what an audit plays against.

A released row is decode(fence(locate(raw row) + noise)): the raw row's code, bounded first, so that two rows cannot
differ by more than the sensitivity; then independent Laplace noise on every element; then, in some methods, a second
bound, the fence, whose ends collect the tails.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from bench.types import Dataset, Release


class Mechanism(ABC):
    """Laplace noise on a code of width d. Everything here is public.

    `exact` says that `observe` gives the noisy code itself, up to rounding; otherwise it is only close to it (a decoder
    that cannot be inverted). `rowwise` says that a row's release depends on that row alone.
    """

    exact: bool = True
    rowwise: bool = True

    @property
    @abstractmethod
    def scale(self) -> Tensor:
        """(d,) float64: the Laplace scale b of every element; 0 where an element never varies."""

    @property
    def fence(self) -> tuple[Tensor, Tensor] | None:
        """(d,) float64 each: the bounds put on the noisy code, in its own units; None (the default) for none."""
        return None

    @abstractmethod
    def locate(self, data: Dataset) -> Tensor:
        """(n, d) float64: the codes of raw rows as the noise finds them: bounded, inside the fence, without noise."""

    @abstractmethod
    def observe(self, release: Release) -> Tensor:
        """(m, d) float64: the noisy codes that released rows show, in units of the code."""

    def witnesses(self, like: Dataset) -> Sequence[tuple[Dataset, Dataset]]:
        """Pairs of inputs, one row each, whose codes lie as far apart as the mechanism lets them; none by default.

        `like` holds rows of the kind that the scheme reads, for shapes, labels and ordinary examples.
        """
        return ()

    def log_density(self, located: Tensor, observed: Tensor) -> Tensor:
        """(n, m) float64: log density of each observed row (m, d) given each located one (n, d).

        Elements that the fence stopped contribute the mass of the tail beyond it; those of scale 0, nothing.
        """
        varies = self.scale > 0
        scale = self.scale[varies]
        a, b = located[:, varies].double() / scale, observed[:, varies].double() / scale
        total = -torch.cdist(a, b, p=1) - float(torch.log(2 * scale).sum())
        if self.fence is None:
            return total
        low, high = (bound[varies] / scale for bound in self.fence)
        # `locate` stays inside the fence, where a tail is exp(-distance) / 2: the density but for the scale.
        return total + (((b <= low) | (b >= high)) * torch.log(scale)).sum(dim=1)

    def noise(self, located: Tensor, observed: Tensor) -> Tensor:
        """(p, d) float64: what was added, row by row, in units of the scale; NaN where it cannot be seen.

        Standard Laplace numbers if the mechanism is what it says.
        """
        found = (observed.double() - located.double()) / self.scale
        hidden = (self.scale == 0).expand_as(found)
        if self.fence is not None:
            low, high = self.fence
            hidden = hidden | (observed <= low) | (observed >= high)
        return found.masked_fill(hidden, math.nan)
