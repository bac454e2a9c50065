"""DOMIAS: likely members lie where the release is denser than the population.

Source: van Breugel, Sun, Qian and van der Schaar 2023, "Membership inference attacks against synthetic data through
overfitting detection" (AISTATS): the score is p_release(x) / p_reference(x) (equation 2), here its logarithm, with
densities by Gaussian kernels (their non-parametric choice).

Differences:
- The reference rows are those that Eve, the attacker, knows to be outside the release: her control rows, and the public
  rows if they are of the same collection.
- Both densities are taken along the principal axes of the reference rows, in units of their deviations (the paper
  reduces images first, and scales each density by its own rows' covariance). The bandwidth is Scott's factor for as
  many rows and axes, times `bandwidth`.
- Labels are not looked at: on chest X-rays, densities within the candidate's class changed the AUC by less than .01
  (k-Same with k of 2, 5 and 10, CVAE).
- The paper also offers flows (BNAF) in place of kernels.

Limits: columns are divided by their deviation outside the release, so that noise in columns that hardly vary there (the
border of an image) drowns all others: digits under noise of .25 gave an AUC of .59 (.67 without such columns; `dcr`:
.93). As `dcr`, it is blind to a release in other units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.eve.channel import PrincipalSpace
from bench.eve.densities import log_density
from bench.eve.own_releases import own_rows
from bench.rows.row_sets import drawn
from bench.types import Attack, Attacker, Parameter, Release, View
from bench.validation import at_least, positive_and_finite


@dataclass(frozen=True)
class DOMIAS(Attack):
    """Log ratio of two densities at the candidate: release over outside rows.

    Args:
        components: Principal axes along which densities are taken, at most.
        bandwidth: Bandwidth in units of Scott's factor.
        draws: Rows drawn from a published generator, as a multiple of the released rows; 0 draws none.
    """

    name: ClassVar[str] = "domias"
    source: ClassVar[str] = "van Breugel et al. 2023, DOMIAS with kernel densities"
    scores: ClassVar[Literal["pairs", "membership"]] = "membership"
    knowledge: ClassVar[str] = (
        "the candidates, the release (a generator where one is published), and rows of the same kind outside it"
    )
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"draws": 1}}

    components: int = 64
    bandwidth: float = 1.0
    draws: int = 10

    def __post_init__(self) -> None:
        at_least(1, components=self.components)
        positive_and_finite(bandwidth=self.bandwidth)
        at_least(0, draws=self.draws)

    def fit(self, view: View, seed: int) -> DOMIASAttacker:
        """The density of the rows outside the release at the candidates."""
        known = own_rows(view).samples
        space = PrincipalSpace.of(known, self.components, whiten=True)
        rows = space.coordinates(view.candidates.samples)
        return DOMIASAttacker(self, space, rows, self.density(rows, space.coordinates(known)), seed)

    def density(self, rows: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Unnormalised log density (n,) of others (m, q) at rows (n, q)."""
        scott = float(len(others)) ** (-1 / (rows.shape[1] + 4))
        return log_density(rows, others, [self.bandwidth * scott])[:, 0]


@dataclass(frozen=True, eq=False)
class DOMIASAttacker(Attacker):
    """The axes, the candidates (n, q) along them, their reference density (n,)."""

    attack: DOMIAS
    space: PrincipalSpace
    rows: torch.Tensor
    reference: torch.Tensor
    seed: int

    def membership(self, sealed: Release) -> torch.Tensor:
        """Log density ratio (n,) float64. Raises NotApplicable for rows of another shape."""
        released = self.space.coordinates(drawn(sealed, self.attack.draws, self.seed).samples)
        return self.attack.density(self.rows, released) - self.reference

    def notes(self) -> Mapping[str, int | float | str]:
        """Along how many axes densities were taken."""
        return {"axes": self.rows.shape[1]}
