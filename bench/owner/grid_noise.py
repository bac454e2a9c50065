"""Laplace noise on a grid, so that bounds hold for published bits.

Rows come onto the grid first, noise is a whole number of steps (the discrete Laplace distribution), and so is their
sum: whatever comes of it later is post-processing. A bound counts in steps, after rounding (Canonne, Kamath and Steinke
2020): if rows differ by at most D steps in L1 and the noise has scale t steps, epsilon = D / t.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import torch

from bench.randomness import Grid, Stream
from bench.types import by_blocks

NOTHING_LEFT = (
    "nothing of any row is left: beside so much noise all of them are one point of the grid, so that epsilon is 0"
)
"""The caveat of a scheme whose rows differ by no step of the grid."""


@dataclass(frozen=True)
class GridNoise:
    """Noise of Laplace scale `scale`, in units of the values, on `grid`."""

    grid: Grid
    scale: float

    @classmethod
    def of(cls, scale: float, reach: float) -> Self:
        """Noise of that scale for values up to `reach`; both are public."""
        return cls(Grid.for_noise(scale, reach), scale)

    @classmethod
    def keeping(cls, epsilon: float, low: torch.Tensor, high: torch.Tensor) -> Self:
        """The noise that hides any change within `low`..`high` by `epsilon`.

        Both ends are float64, of a row's shape. Its scale is that of the ranges' sum over epsilon, but for what
        rounding to the grid adds to the ranges.
        """
        scale = float((high - low).sum()) / epsilon
        noise = cls.of(scale, float(max(low.abs().max(), high.abs().max())))
        steps = Fraction(noise.span(low, high))
        # If the grid is so coarse that both ends of every range are one point, any scale will do.
        return cls(noise.grid, above(steps * Fraction(noise.grid.step) / Fraction(epsilon)) if steps else scale)

    def span(self, low: torch.Tensor, high: torch.Tensor) -> int:
        """The largest L1 distance in steps of rows within `low`..`high`."""
        return int((self.grid.places(high) - self.grid.places(low)).sum())

    def epsilon(self, steps: int) -> float:
        """The bound for rows that differ by so many steps, rounded up."""
        return max(above(steps / self.grid.steps(self.scale)), sys.float_info.min)

    def on_grid(self, values: torch.Tensor) -> torch.Tensor:
        """float64: values on the grid."""
        return self.grid.values(self.grid.places(values)).double()

    def add(
        self, samples: torch.Tensor, stream: Stream, values: Callable[[torch.Tensor], torch.Tensor] = lambda rows: rows
    ) -> torch.Tensor:
        """Rows (n, ...) with noise, on the grid.

        They are float32, or finer if the grid needs it.

        Args:
            samples: (n, ...) rows; they are worked on in blocks, which change nothing.
            stream: Of the noise.
            values: What is to be hidden of rows, each of its own row alone and of its shape. Default: the rows.
        """

        def noisy(rows: torch.Tensor) -> torch.Tensor:
            places = self.grid.places(values(rows))
            noise = self.grid.laplace(stream, self.scale, tuple(places.shape))
            return self.grid.values(places + noise.to(places.device))

        return by_blocks(samples, noisy, stream.rows_apart(samples.shape[1:].numel()), draws=True)


def above(exact: Fraction) -> float:
    """The least float64 that is not below.

    >>> above(Fraction(1, 3)) > Fraction(1, 3), above(Fraction(1, 2))
    (True, 0.5)
    """
    nearest = float(exact)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < exact else nearest
