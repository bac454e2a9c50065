"""Monte Carlo: the share of generated rows in a ball around candidates.

Source: Hilprecht, Härterich and Bernau 2019, "Monte Carlo and reconstruction membership inference attacks against
generative models" (PETS), section 4.1: f(x) = 1/m #{y: d(x, y) <= epsilon}; and its form weighted by distance, the mean
over generated rows of -log d(x, y) inside the ball. Epsilon by the median heuristic, the median over candidates of the
distance to their nearest generated row, or as a percentile of all distances between candidates and generated rows.
Distances are Euclidean between principal components.

Differences:
- Columns are scaled to unit deviation before the principal axes are taken, all by rows that Eve, the attacker, knows to
  be outside the release (the paper's axes are those of rows of the same kind).
- The weighted form sums log(epsilon / d) inside the ball, so that a row on its edge counts nothing; without that, the
  sign of a term would depend on the unit of distance. Distances below `CLOSEST` times epsilon count as that.
- Releases without a generator give what rows they have.
- The paper's second attack, by reconstruction, needs the encoder, which is never published.

Limits: columns are divided by their deviation outside the release, so that noise in columns that hardly vary there (the
border of an image) drowns all others: digits under noise of .25 gave an AUC of .46 (.85 without such columns; `dcr`:
.93). As `dcr`, it is blind to a release in other units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.eve.channel import PrincipalSpace
from bench.eve.own_releases import own_rows
from bench.pair_distances import pair_distances
from bench.rows.row_sets import drawn
from bench.statistics.nearest_rows import nearest
from bench.types import Attack, Attacker, Parameter, Release, View
from bench.validation import at_least

PAIRS = 2**22
CLOSEST = 1e-6


@dataclass(frozen=True)
class MonteCarlo(Attack):
    """The number of generated rows that lie close to the candidate.

    Args:
        percentile: Epsilon as a percentile of all distances, above 0 and at most 100; None for the median heuristic.
        weighted: Weigh rows in the ball by minus the logarithm of their distance.
        components: Principal axes along which rows are compared, at most.
        draws: Rows drawn from a published generator, as a multiple of the released rows; 0 draws none.
    """

    name: ClassVar[str] = "monte-carlo"
    source: ClassVar[str] = "Hilprecht, Härterich and Bernau 2019, Monte Carlo attack"
    scores: ClassVar[Literal["pairs", "membership"]] = "membership"
    knowledge: ClassVar[str] = (
        "the candidates, the release (a generator where one is published), and rows of the same kind outside it"
    )
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"draws": 1}}

    percentile: float | None = None
    weighted: bool = True
    components: int = 40
    draws: int = 10

    def __post_init__(self) -> None:
        if self.percentile is not None and not 0 < self.percentile <= 100:
            raise ValueError(f"percentile must be above 0 and at most 100, got {self.percentile}")
        at_least(1, components=self.components)
        at_least(0, draws=self.draws)

    def fit(self, view: View, seed: int) -> MonteCarloAttacker:
        """Find the principal axes of the rows outside the release."""
        space = PrincipalSpace.of(own_rows(view).samples, self.components, whiten=False)
        return MonteCarloAttacker(self, space, space.coordinates(view.candidates.samples), seed)


@dataclass(frozen=True, eq=False)
class MonteCarloAttacker(Attacker):
    """The axes, and the candidates (n, q) along them."""

    attack: MonteCarlo
    space: PrincipalSpace
    rows: torch.Tensor
    seed: int

    def membership(self, sealed: Release) -> torch.Tensor:
        """(n,) float64. Raises NotApplicable for released rows of another shape than candidates."""
        released = self.space.coordinates(drawn(sealed, self.attack.draws, self.seed).samples)
        epsilon = self._epsilon(released)
        scores = []
        for apart in self._distances(released):
            near = apart <= epsilon
            if self.attack.weighted and epsilon > 0:
                weights = -(apart / epsilon).clamp_min(CLOSEST).log()
                scores.append((near * weights).sum(dim=1) / len(released))
            else:
                scores.append(near.sum(dim=1).double() / len(released))
        return torch.cat(scores)

    def _epsilon(self, released: torch.Tensor) -> float:
        if self.attack.percentile is None:
            return float(nearest(self.rows, released).median())
        counted = math.ceil(len(self.rows) * len(released) * self.attack.percentile / 100)
        least = torch.empty(0, dtype=torch.float64, device=released.device)
        for apart in self._distances(released):
            both = torch.cat((least, apart.flatten()))
            least = both.topk(min(counted, len(both)), largest=False, sorted=False).values
        return float(least.max())

    def _distances(self, released: torch.Tensor) -> Iterator[torch.Tensor]:
        """(b, m) float64, candidates a block at a time."""
        for part in torch.split(self.rows, max(1, PAIRS // len(released))):
            yield pair_distances(part, released, 2).sqrt()
