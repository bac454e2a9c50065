"""Optimiser of private training: Opacus' clipping, discrete Gaussian noise.

A row's clipped gradient is rounded to the grid towards zero, which makes no vector longer, and what float64 errs by in
clipping is taken off before; sums of rows are sums of whole numbers, and the noise is the discrete Gaussian
distribution (Canonne, Kamath and Steinke 2020) on the same grid. So the sum that is published can be reached from any
rows, and a row moves it by the clip at most.

The accountant's noise is continuous. At 2^20 steps a deviation the discrete one has the same Renyi divergences (their
proposition 5), and its privacy profile differs from the continuous one's by the error of a sum for an integral, about
the square of a step in deviations: 10^-12 of delta, against a calibration that is content within 1 % of epsilon.
"""

from __future__ import annotations

import math

import torch
from opacus.optimizers import DPOptimizer
from torch import Tensor

from bench.randomness import Grid, Stream

FINE = 20  # steps of a deviation: 2^20 or more
CACHED = 1 << 20  # bytes
SHORTER = 1 - 2.0**-30  # float64 errs by far less in the norm and the product of a gradient


class PrivateOptimiser(DPOptimizer):  # type: ignore[misc]
    """Opacus' optimiser whose noise is that of `stream`, used for nothing else."""

    def __init__(
        self, optimiser: torch.optim.Optimizer, stream: Stream, *, noise_multiplier: float, max_grad_norm: float,
        expected_batch_size: int,
    ) -> None:  # fmt: skip
        super().__init__(
            optimiser, noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm,
            expected_batch_size=expected_batch_size,
        )  # fmt: skip
        self._stream = stream
        self._sigma = noise_multiplier * max_grad_norm
        finest = min(self._sigma, max_grad_norm)
        self._grid = Grid(2.0 ** (math.floor(math.log2(finest)) - FINE), bits=52)
        self._within: Tensor | None = None

    def clip_and_accumulate(self) -> None:
        """Add every row's clipped gradient to `summed_grad`, int64 steps, as `check` verifies."""
        gradients = [_flat(weight.grad_sample).flatten(1) for weight in self.params]
        squares = torch.stack([_squares(part) for part in gradients], dim=1).sum(dim=1)
        factor = (SHORTER * self.max_grad_norm / squares.sqrt().clamp_min(torch.finfo(torch.float64).tiny)).clamp(max=1)
        longest = torch.zeros_like(squares)
        for weight, part in zip(self.params, gradients, strict=True):
            total = torch.zeros(part.shape[1], dtype=torch.int64, device=part.device)
            for rows in _blocks(part):
                clipped = part[rows].to(torch.float64, copy=True).mul_(factor[rows, None])
                places = self._grid.places(clipped, rounding="to zero", nan="undefined")
                longest[rows] += places.double().mul_(self._grid.step).square_().sum(dim=1)
                total += places.sum(dim=0)
            summed = total.view_as(weight)
            weight.summed_grad = summed if weight.summed_grad is None else weight.summed_grad + summed
            weight.grad_sample._processed = True
        within = (longest <= self.max_grad_norm**2).all() & squares.isfinite().all()
        self._within = within if self._within is None else self._within & within

    def check(self) -> None:
        """AssertionError if any clipped gradient was too long or not finite."""
        assert self._within is None or bool(self._within), "a clipped gradient is longer than the clip"

    def add_noise(self) -> None:
        """Fill `grad` of every parameter: the sum of clipped gradients with noise."""
        for weight in self.params:
            noise = self._grid.gaussian(self._stream, self._sigma, tuple(weight.shape)).to(weight.device)
            weight.grad = self._grid.values(weight.summed_grad + noise).to(weight.dtype)
            weight.summed_grad._processed = True


def _squares(gradients: Tensor) -> Tensor:
    """The squared length (n,) float64 of each row's gradient (n, numbers)."""
    return torch.cat([gradients[rows].to(torch.float64, copy=True).square_().sum(dim=1) for rows in _blocks(gradients)])


def _blocks(gradients: Tensor) -> list[slice]:
    """The rows in parts that fit the host's cache in float64."""
    n, numbers = gradients.shape
    size = max(1, CACHED // (8 * max(1, numbers))) if gradients.device.type == "cpu" else n
    return [slice(start, start + size) for start in range(0, max(n, 1), max(size, 1))]


def _flat(samples: Tensor | list[Tensor]) -> Tensor:
    return samples if isinstance(samples, Tensor) else torch.cat(samples)
