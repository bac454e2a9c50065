"""Invariants: few statistics that keys preserve, or move alike, identify a row.

A key may turn, shuffle or scramble a row beyond recognition and still keep its length, its mean or its largest value to
the last digit. One exact number is enough to name a row among thousands.

Source: Carlini et al., "NeuraCrypt is not private" (2021), from which the idea comes that statistics of a patch survive
a keyed network (the attack `moments` learns such relations by contrast, which takes exact ones for near ones). Here the
relation is linear and Gaussian, and its noise is measured: a statistic that survives to seven digits weighs as such.

The statistics of a row, float64: mean, the root of the 1st, 2nd and 4th absolute moment, deviation, extremes,
quantiles, roughness of images, logarithm and square of those that have a size, and the root mean squares of its
patches, sorted (whichever way a key shuffles patches, they stay). Eve, the attacker, releases candidates under keys of
her own, predicts a released row's statistics from the raw row's, and takes the covariance of the errors from further
keys. A candidate's score is the log odds of its posterior (`bench.pairs.score_matrices`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.eve.own_releases import own_release, own_releases
from bench.eve.row_statistics import statistics
from bench.pair_distances import pair_distances
from bench.pairs.score_matrices import PosteriorScores
from bench.seeds import derive
from bench.types import Attack, Attacker, Parameter, Release, View
from bench.validation import at_least

RIDGE = 1e-10  # of the rows: it keeps the equations soluble and an exact relation exact
EXACT = 1e-16  # least variance of an error, in units of the statistic's own: that of float32, and less
TINY = 1e-30


@dataclass(frozen=True)
class Invariants(Attack):
    """Predicts statistics of released rows, and weighs each by its past error.

    Args:
        keys: Keys of Eve's own; half of them measure the errors.
        rows: Candidates released under each, at most.
    """

    name: ClassVar[str] = "invariants"
    source: ClassVar[str] = (
        "Carlini et al. 2021, NeuraCrypt is not private (statistics that survive); linear Gaussian here"
    )
    makes_releases = True
    knowledge: ClassVar[str] = "the raw rows, the release and the scheme; no key, no labels"
    needs_public: ClassVar[bool] = False
    relinks: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"keys": 4}}

    keys: int = 8
    rows: int = 1024

    def __post_init__(self) -> None:
        at_least(2, keys=self.keys, rows=self.rows)

    def fit(self, view: View, seed: int) -> InvariantsAttacker:
        """Measure on Eve's own keys. Raises NotApplicable for releases without links."""
        simulated = own_releases if view.relinks else own_release
        output = (simulated(view, self.rows, derive(seed, number), self.name) for number in range(self.keys))
        pairs = [(statistics(rows.samples), statistics(release.samples)) for rows, release in output]
        raw = Scale.of(torch.cat([own for own, _ in pairs]))
        released = Scale.of(torch.cat([output for _, output in pairs]))
        half = (self.keys + 1) // 2
        x = torch.cat([raw(own) for own, _ in pairs[:half]])
        y = torch.cat([released(output) for _, output in pairs[:half]])
        gram = x.T @ x + RIDGE * len(x) * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        weights = torch.linalg.solve(gram, x.T @ y)
        errors = torch.cat([released(output) - raw(own) @ weights for own, output in pairs[half:]])
        variances, axes = torch.linalg.eigh(errors.T @ errors / len(errors))
        whiten = axes / variances.clamp_min(EXACT).sqrt()
        expected = raw(statistics(view.candidates.samples)) @ weights @ whiten
        return InvariantsAttacker(expected, released, whiten, float(variances.clamp_min(0).amin().sqrt()))


@dataclass(frozen=True, eq=False)
class Scale:
    """Mean and deviation of simulated statistics, and a mask of varying ones."""

    mean: torch.Tensor
    deviation: torch.Tensor
    varies: torch.Tensor

    @classmethod
    def of(cls, numbers: torch.Tensor) -> Scale:
        """The scale of statistics (n, q)."""
        deviation, mean = torch.std_mean(numbers, dim=0, correction=0)
        varies = deviation > 1e-12 * mean.abs().clamp_min(TINY)
        return cls(mean[varies], deviation[varies], varies)

    def __call__(self, numbers: torch.Tensor) -> torch.Tensor:
        """Those that vary, in units of their deviation, and a constant column."""
        scaled = (numbers[:, self.varies] - self.mean) / self.deviation
        return torch.cat((scaled, torch.ones_like(numbers[:, :1])), dim=1)


@dataclass(frozen=True, eq=False)
class InvariantsAttacker(Attacker):
    """Expected statistics (n, q) in units of their errors; the smallest error."""

    expected: torch.Tensor
    scale: Scale
    whiten: torch.Tensor
    least: float

    def score(self, sealed: Release) -> PosteriorScores:
        """Log odds under the measured errors."""
        seen = self.scale(statistics(sealed.samples)) @ self.whiten
        return PosteriorScores(
            lambda rows, cols: -0.5 * pair_distances(self.expected[rows], seen[cols], 2),
            (len(self.expected), len(seen)),
        )

    def notes(self) -> Mapping[str, int | float | str]:
        """The error of the best combination of statistics."""
        return {"least error": self.least}
