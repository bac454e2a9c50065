"""Normalising flows: networks that turn rows into independent standard normal numbers, and back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from bench.memory.kept import by_blocks

CHUNK = 2**18  # elements (rows x d) that are worked on at once


class Flow(nn.Module, ABC):
    """An invertible network with a known Jacobian, whose latent is standard normal where training succeeded.

    Rows have d elements and so have latents. A condition (n, k), float32, is what else the density may depend on; an
    unconditional flow takes None. Same rows in the same order, same bits; in another batch the last digits may differ.
    """

    @abstractmethod
    def encode(self, samples: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Latents (n, d) of rows (n, ...), and log |det of the Jacobian| (n,) in nats; float32."""

    @abstractmethod
    def decode(self, latent: Tensor, condition: Tensor | None = None) -> Tensor:
        """The rows (n, ...) of latents (n, d): the inverse of `encode`; float32."""

    def initialise(self, samples: Tensor, condition: Tensor | None = None) -> None:
        """Set weights that depend on data by a first batch; by default there are none."""

    def log_density(self, samples: Tensor, condition: Tensor | None = None) -> Tensor:
        """Log density (n,) of rows in nats, under a standard normal latent."""
        latent, log_det = self.encode(samples, condition)
        return -0.5 * (latent.square() + math.log(2 * math.pi)).sum(dim=1) + log_det


def encoded(flow: Flow, samples: Tensor, condition: Tensor | None = None) -> Tensor:
    """Latents (n, d) of any number of rows, without gradients and in full float32."""
    return _each(lambda *part: flow.encode(*part)[0], samples, condition)


def decoded(flow: Flow, latent: Tensor, condition: Tensor | None = None) -> Tensor:
    """The rows (n, ...) of any number of latents, without gradients and in full float32."""
    return _each(flow.decode, latent, condition)


def log_densities(flow: Flow, samples: Tensor, condition: Tensor | None = None) -> Tensor:
    """Log densities (n,) of any number of rows in nats, without gradients and in full float32."""
    return _each(flow.log_density, samples, condition)


def rows_at_once(rows: Tensor) -> int:
    """Rows that these functions work on at a time."""
    return max(1, CHUNK // max(1, rows[:1].numel()))


def _each(work: Callable[[Tensor, Tensor | None], Tensor], rows: Tensor, condition: Tensor | None) -> Tensor:
    """What `work` makes of the rows and their conditions, some of them at a time."""

    def made(index: Tensor) -> Tensor:
        return work(rows[index], None if condition is None else condition[index])

    with torch.no_grad():
        return by_blocks(torch.arange(len(rows), device=rows.device), made, rows_at_once(rows))
