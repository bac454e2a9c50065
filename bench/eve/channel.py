"""Principal axes, and a Gaussian channel from raw to released rows.

The channel is o = W u + e, for a raw row's description u and its released row's description o, both centred over their
set; e is normal with one covariance S for all rows. It is measured on simulated releases. W is a ridge regression on
three quarters of them. S is the covariance of the errors that a regression on every other one of them makes on those
between. The last quarter chooses three numbers by the mean log posterior of the true candidate: the ridge, the
shrinkage of S to its diagonal, and a factor on the log density (an approximate density is too sharp). All else is
judged on keys that it was not fitted to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch

from bench.statistics.nearest_rows import standardise
from bench.types import NotApplicable

RIDGES = (1e-6, 1e-4, 1e-2, 1.0, 100.0)
SHRINKAGES = (1e-4, 1e-2, 0.1, 0.5, 1.0)
FACTORS = tuple(2.0**power for power in range(-12, 3))
SMALLEST = 1e-6
"""Axes shorter than this share of the longest are rounding; so is spread below this share of a description's own."""
FEWEST = 4


@dataclass(frozen=True, eq=False)
class Simulated:
    """One simulated release: descriptions (p, q) raw and (p, r) released, row-aligned."""

    raw: torch.Tensor
    released: torch.Tensor


@dataclass(frozen=True, eq=False)
class Channel:
    """log p(o|u) = -|ua - ob|^2, up to a constant by o.

    Args:
        a, b: (q, width) and (r, width) float64.
        loss: Mean of -log posterior of the true row on held-out keys, among `rows` rows.
        chance: The value of guessing.
        ridge, shrinkage, factor: As chosen.
    """

    a: torch.Tensor
    b: torch.Tensor
    loss: float
    chance: float
    ridge: float
    shrinkage: float
    factor: float


def axes(rows: torch.Tensor, most: int) -> torch.Tensor:
    """Principal axes (d, q) float64 of rows (s, d), at most `most`."""
    centred = rows - rows.mean(dim=0)
    # Of few long rows the products of rows are the smaller matrix.
    wide = centred.shape[1] > len(centred)
    values, vectors = torch.linalg.eigh(centred @ centred.T if wide else centred.T @ centred)
    lengths = values.clamp_min(0).sqrt()
    places = (lengths > SMALLEST * lengths[-1]).nonzero()[-most:, 0]
    directions: torch.Tensor = centred.T @ vectors[:, places] / lengths[places] if wide else vectors[:, places]
    return directions


def measure(simulated: Sequence[Simulated]) -> Channel:
    """The channel behind simulated releases, at least four of them."""
    if len(simulated) < FEWEST:
        raise ValueError(f"a channel is measured on at least {FEWEST} simulated releases, got {len(simulated)}")
    quarter = len(simulated) // 4
    fitted, held = simulated[:-quarter], simulated[-quarter:]
    whole, *halves = (_Regression.on(parts) for parts in (fitted, fitted[1::2], fitted[::2]))
    own = torch.cat([part.released for part in fitted]).square().mean(dim=0)
    floor = float(own.sum()) / max(len(own), 1) * SMALLEST**2 + torch.finfo(torch.float64).tiny
    best: Channel | None = None
    for ridge in RIDGES:
        weights, crossed = whole.weights(ridge), [half.weights(ridge) for half in halves]
        left = torch.cat([part.released - part.raw @ crossed[place % 2] for place, part in enumerate(fitted)])
        covariance = left.T @ left / len(left)
        diagonal = covariance.diagonal().clamp_min(floor).diag()
        for shrinkage in SHRINKAGES:
            mixed = (1 - shrinkage) * covariance + shrinkage * diagonal
            # S^-1 = w w^T, so that |o - W u|^2 in units of S is |u @ (W w) - o @ w|^2.
            whitening = torch.linalg.solve_triangular(
                torch.linalg.cholesky(mixed), torch.eye(len(mixed)).to(mixed), upper=False
            ).T / math.sqrt(2)
            a, b = weights @ whitening, whitening
            losses = [_losses(part.raw @ a, part.released @ b) for part in held]
            loss, factor = torch.stack(losses).mean(dim=0).min(dim=0)
            if best is None or float(loss) < best.loss:
                root = FACTORS[int(factor)] ** 0.5
                chance = math.fsum(math.log(len(part.raw)) for part in held) / len(held)
                best = Channel(a * root, b * root, float(loss), chance, ridge, shrinkage, FACTORS[int(factor)])
    assert best is not None
    return best


@dataclass(frozen=True, eq=False)
class _Regression:
    """Ridge regression: eigenvalues (q,), axes (q, q), and released rows along them."""

    values: torch.Tensor
    basis: torch.Tensor
    along: torch.Tensor

    @classmethod
    def on(cls, parts: Sequence[Simulated]) -> _Regression:
        u, o = torch.cat([part.raw for part in parts]), torch.cat([part.released for part in parts])
        values, basis = torch.linalg.eigh(u.T @ u)
        return cls(values.clamp_min(0), basis, basis.T @ (u.T @ o))

    def weights(self, ridge: float) -> torch.Tensor:
        """(q, r) for a ridge in units of the mean eigenvalue."""
        size = float(self.values.sum()) / max(len(self.values), 1) + torch.finfo(torch.float64).tiny
        return self.basis @ (self.along / (self.values + ridge * size)[:, None])


def _losses(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """(f,) mean of -log posterior of the true row, for each factor."""
    density = 2 * a @ b.T - a.square().sum(dim=1, keepdim=True)
    density = density - density.amax(dim=0)
    true = density.diagonal()
    return torch.stack([((factor * density).logsumexp(dim=0) - factor * true).mean() for factor in FACTORS])


@dataclass(frozen=True, eq=False)
class PrincipalSpace:
    """Principal components of rows whose columns are scaled to unit deviation.

    Args:
        known: (s, ...) the rows that give means, scales and axes.
        directions: (d, q) float64: orthonormal columns; of unit deviation along each axis if whitened.
    """

    known: torch.Tensor
    directions: torch.Tensor

    @classmethod
    def of(cls, known: torch.Tensor, components: int, *, whiten: bool) -> Self:
        """At most `components` axes beyond rounding. Raises NotApplicable for constant rows."""
        rows, _ = standardise(known, known)
        directions = axes(rows, components)
        if not directions.shape[1]:
            raise NotApplicable(f"the {len(known)} rows that Eve knows to be outside the release do not vary: no axes")
        return cls(known, directions / (rows @ directions).std(dim=0, correction=0) if whiten else directions)

    def coordinates(self, samples: torch.Tensor) -> torch.Tensor:
        """Coordinates (n, q) float64. Raises NotApplicable for rows of another shape."""
        rows: torch.Tensor = standardise(self.known, samples)[1] @ self.directions
        return rows
