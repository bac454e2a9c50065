"""A grid for noise, fixed before the data are seen.

Floating-point noise has holes (Mironov 2012): of the numbers near a released one, some can be reached from one raw row
and not from another, which voids any bound. On a grid both raw row and noise are whole multiples of one step, so that
every released number can be reached from every row, with the probabilities that the claim counts with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

import torch

from bench.randomness.secret_streams import Stream

FINE = 16  # steps of a scale: 2^16, so that the grid costs the noise nothing that can be measured
HELD = 24  # bits of a float32: whole multiples of a step up to 2^24 are exact


@dataclass(frozen=True)
class Grid:
    """Whole multiples of a power of two, up to 2^bits of them.

    Args:
        step: A power of two.
        bits: Up to 24 float32 holds each multiple exactly; up to 52 float64 does, for codes that are decoded.
    """

    step: float
    bits: int = HELD

    def __post_init__(self) -> None:
        if not (self.step > 0 and math.isfinite(self.step) and math.frexp(self.step)[0] == 0.5):
            raise ValueError(f"the step of a grid must be a power of two, got {self.step}")
        if not 1 <= self.bits <= 52:
            raise ValueError(f"bits of a grid must be from 1 to 52, got {self.bits}")

    @classmethod
    def for_noise(cls, scale: float, reach: float) -> Self:
        """Grid for noise of a public scale on numbers up to `reach`.

        The step is a 65,536th of the scale or less, but no finer than lets numbers of 64 times the reach plus
        128 scales be held exactly: noise is stopped there, with a probability below exp(-127).
        """
        finest = (64 * reach + 128 * scale) / (1 << HELD)
        return cls(2.0 ** math.floor(math.log2(max(scale / (1 << FINE), finest))))

    @property
    def most(self) -> int:
        """The largest multiple."""
        return 1 << self.bits

    def places(
        self, values: torch.Tensor, *, rounding: Literal["nearest", "to zero"] = "nearest",
        nan: Literal["refused", "undefined"] = "refused",
    ) -> torch.Tensor:  # fmt: skip
        """Multiples of the step at each number, int64.

        "to zero" never makes a vector longer. Raises ValueError where one is NaN, for which no bound would
        hold; "undefined" does not look, for which the host would wait for a device.
        """
        known = no_nan(values) if nan == "refused" else values
        exact = known.double() / self.step  # a power of two: no rounding here
        rounded = exact.round() if rounding == "nearest" else exact.trunc()
        return rounded.clamp(-self.most, self.most).long()

    def values(self, places: torch.Tensor) -> torch.Tensor:
        """float32 (beyond 24 bits float64) numbers at multiples, clamped to the last."""
        exact = places.clamp(-self.most, self.most).double() * self.step
        return exact.float() if self.bits <= HELD else exact

    def laplace(self, stream: Stream, scale: float, shape: tuple[int, ...]) -> torch.Tensor:
        """Discrete Laplace noise in steps, int64; scale in units of values."""
        return stream.laplace_integers(self.steps(scale), *shape)

    def gaussian(self, stream: Stream, sigma: float, shape: tuple[int, ...]) -> torch.Tensor:
        """Discrete Gaussian noise in steps, int64, of that standard deviation."""
        return stream.gaussian_integers(self.steps(sigma), *shape)

    def steps(self, length: float) -> Fraction:
        """A length in steps, exactly."""
        return Fraction(length) / Fraction(self.step)


def no_nan(values: torch.Tensor) -> torch.Tensor:
    """The values, checked for NaN; infinite ones are allowed.

    Raises:
        ValueError: One is NaN. As a whole number it would be the least there is, which noise does not hide.

    >>> import torch
    >>> no_nan(torch.tensor([1.0, torch.inf])).tolist()
    [1.0, inf]
    """
    if nothing := int(values.isnan().sum()):
        raise ValueError(
            f"noise hides numbers: expected {values.numel()}, got {nothing} NaN among them: a row is not finite, or so "
            "large that what a network makes of it is not; mend or leave out such rows"
        )
    return values
