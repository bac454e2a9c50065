"""The optimiser of private training: Opacus' clipping, and noise from a secret's stream."""

from __future__ import annotations

import torch
from opacus.optimizers import DPOptimizer

from bench.randomness import Stream


class PrivateOptimiser(DPOptimizer):  # type: ignore[misc]
    """Opacus' optimiser whose noise is that of `stream`.

    Args:
        optimiser: What steps along the noisy gradient.
        stream: Of the noise, from which nothing else is drawn.
        noise_multiplier: Standard deviation of the noise in units of `max_grad_norm`.
        max_grad_norm: The longest gradient that a row can have.
        expected_batch_size: What the sum of gradients is divided by.
    """

    def __init__(
        self, optimiser: torch.optim.Optimizer, stream: Stream, *, noise_multiplier: float, max_grad_norm: float,
        expected_batch_size: int,
    ) -> None:  # fmt: skip
        super().__init__(
            optimiser, noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm,
            expected_batch_size=expected_batch_size,
        )  # fmt: skip
        self._stream = stream

    def add_noise(self) -> None:
        """Fill `grad` of every parameter: the sum of clipped gradients with noise."""
        sigma = self.noise_multiplier * self.max_grad_norm
        for weight in self.params:
            noise = self._stream.normal(*weight.shape) * sigma
            weight.grad = (weight.summed_grad + noise.to(weight.summed_grad)).view_as(weight)
            weight.summed_grad._processed = True
