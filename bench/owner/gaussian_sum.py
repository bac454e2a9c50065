"""Gaussian noise on sums over rows, calibrated exactly, on a grid.

Source: Dwork and Roth, The Algorithmic Foundations of Differential Privacy (2014), for the mechanism; Balle and Wang,
Improving the Gaussian Mechanism for Differential Privacy (2018), theorem 8: a release whose L2 sensitivity is mu
deviations of its noise has delta = Phi(mu / 2 - epsilon / mu) - exp(epsilon) Phi(-mu / 2 - epsilon / mu), and no less.
T such releases of all rows, each chosen in view of the ones before, are one with mu root T (Dong, Roth and Su 2022).

A row's vector is rounded to the grid towards zero, which makes none longer; sums are sums of whole numbers, and noise
is the discrete Gaussian distribution on the same grid (Canonne, Kamath and Steinke 2020), at 2^20 steps a deviation or
more. Its privacy differs from the continuous one's as little as `bench.nets.private_optimiser` says, so that a bound
holds for the bits published.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

import torch

from bench.randomness import Grid, Stream
from bench.validation import between, within

EPSILONS = (1e-3, 500.0)
"""Beyond, the exponentials of the formula overflow, or noise is beyond a grid."""
FINE = 20  # steps of a deviation: 2^20 or more
SHORTER = 1 - 2.0**-20  # far more than float32 errs by in the norm of a vector
BISECTIONS = 200


def delta_of(epsilon: float, mu: float) -> float:
    """Delta of mu-Gaussian privacy at epsilon, never too small.

    >>> round(delta_of(1.0, 1.0), 6)
    0.126937
    """
    below, beyond = (0.5 * math.erfc((epsilon / mu + sign * mu / 2) / math.sqrt(2)) for sign in (-1, 1))
    return below - math.exp(epsilon) * beyond


def calibrated(epsilon: float, delta: float) -> float:
    """Largest mu (L2 sensitivity in deviations) within a budget.

    Raises ValueError for budgets beyond `EPSILONS`, or a delta not in (0, 1).
    """
    within(*EPSILONS, epsilon=epsilon)
    between(0, 1, delta=delta)
    low, high = 0.0, 100.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(epsilon, middle) <= delta else (low, middle)
    assert low > 0, f"no noise keeps epsilon {epsilon} at delta {delta}"
    return low


def accounts(mu: float, delta: float, *, releases: int = 1) -> Mapping[str, float]:
    """Epsilon of that many releases of mu each, by each installed accountant."""
    total, (low, high) = mu * math.sqrt(releases), EPSILONS
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(middle, total) <= delta else (middle, high)
    epsilons = {"Gaussian, exact": high}
    if find_spec("dp_accounting") is not None:
        from dp_accounting import GaussianDpEvent
        from dp_accounting.pld import PLDAccountant

        second = PLDAccountant()
        second.compose(GaussianDpEvent(1 / mu), releases)
        epsilons["dp-accounting, PLD"] = float(second.get_epsilon(delta))
    return epsilons


@dataclass(frozen=True)
class GaussianSum:
    """Noise of deviation `sigma` on sums of vectors of length 1."""

    sigma: float

    @property
    def grid(self) -> Grid:
        """The grid of vectors and noise."""
        return Grid(2.0 ** (math.floor(math.log2(min(self.sigma, 1.0))) - FINE), bits=52)

    def steps(self, vectors: torch.Tensor) -> torch.Tensor:
        """Vectors (n, ...) in grid steps, int64, never longer."""
        return self.grid.places(SHORTER * vectors.double(), rounding="to zero")

    def check(self, squares: torch.Tensor) -> None:
        """AssertionError if a squared length (n,), in steps, exceeds 1."""
        longest = float(squares.max().sqrt()) * self.grid.step if len(squares) else 0.0
        assert longest <= 1, f"a row's vector has length {longest}, at most 1 is allowed"

    def added(self, vectors: torch.Tensor) -> torch.Tensor:
        """Sum (d,) int64, in grid steps, of vectors (n, d).

        AssertionError if one is longer than 1.
        """
        places = self.steps(vectors)
        self.check(places.double().square().sum(dim=1))
        return places.sum(dim=0)

    def noisy(self, total: torch.Tensor, stream: Stream) -> torch.Tensor:
        """float64: a sum in steps with noise, in units of the vectors."""
        noise = self.grid.gaussian(stream, self.sigma, tuple(total.shape)).to(total.device)
        return self.grid.values(total + noise).double()
