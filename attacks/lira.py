"""LiRA: compares the release's likelihood with a candidate in it and without.

Source: Carlini et al. 2022, "Membership inference attacks from first principles" (LiRA), the online attack: Eve, the
attacker, releases random halves of a pool of rows, fits normal densities to a statistic of each candidate where it is
in and where it is out (`bench.eve.densities`), and takes the log ratio of the two at the statistic of the real release.

Differences:
- Shadow models are shadow releases: the known scheme under keys of Eve's own. In place of the confidence of a
  classifier the statistic is the log density of the released rows at the candidate, by Gaussian kernels. Narrow kernels
  read the distance to the nearest row, wide kernels the distance to the mean of all; over all rows, or over those of
  the candidate's class. The one that best tells rows in from rows out among the shadow releases themselves is used,
  each judged by the others. (Several at once, with their covariance, were weaker.)
- The pool is the candidates and the control rows. Halves come in pairs without a common row, class by class
  (`bench.eve.own_releases`). They have half as many rows as the pool, for a release of any size.
- Eve does not know the owner's people: if a scheme looks at them, it sees none in shadow releases.

Its evidence comes from the release: on pneumonia X-rays in an eigenspace (300 members, 100 others) its mean AUC on
CVAEs was .69 (six splits, p below 1e-4 in each), and on CVAEs that had learned from other rows than the members it was
.496 with a standard error of .006 (36 splits, p below .05 in three).

Limits: columns are divided by their deviation outside the release, so that noise in columns that hardly vary there (the
border of an image) drowns all others: digits under noise of .25 gave an AUC of .52 (.93 without such columns; `dcr`:
.93). As `dcr`, it is blind to a release in other units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.eve.candidate_densities import CandidateDensities, described
from bench.eve.densities import InOut
from bench.eve.own_releases import own_rows, shadow_releases
from bench.progress import report
from bench.rows.row_sets import joined
from bench.seeds import derive
from bench.types import Attack, Attacker, Parameter, Release, View
from bench.validation import at_least


@dataclass(frozen=True)
class LiRA(Attack):
    """Log likelihood ratio of densities at the candidate, from shadow releases.

    Args:
        shadows: Shadow releases, an even number of at least 4.
        draws: Rows drawn from a published generator, as a multiple of the released rows; 0 draws none.
    """

    name: ClassVar[str] = "lira"
    source: ClassVar[str] = "Carlini et al. 2022, likelihood ratio attack (online), on shadow releases"
    scores: ClassVar[Literal["pairs", "membership"]] = "membership"
    makes_releases = True
    knowledge: ClassVar[str] = (
        "the candidates, the control rows, the release (a generator where one is published) and the scheme, which she "
        "runs on halves of those rows"
    )
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"shadows": 4, "draws": 1},
        "quick": {"shadows": 32},
        "standard": {"shadows": 64},
        "paper": {"shadows": 128},
    }

    shadows: int = 16
    draws: int = 4

    def __post_init__(self) -> None:
        if self.shadows < 4 or self.shadows % 2:
            raise ValueError(f"shadows must be even and at least 4, got {self.shadows}")
        at_least(0, draws=self.draws)

    def fit(self, view: View, seed: int) -> LiRAAttacker:
        """Release halves of the pool and learn from them.

        Raises:
            NotApplicable: Released rows have another shape than candidates, or the scheme cannot release a half.
        """
        seer = CandidateDensities(view.candidates, own_rows(view).samples, self.draws, derive(seed, "draws"))
        pool, n = joined(view.candidates, view.control), len(view.candidates)
        per_shadow, inside = [], []
        for rows, release in shadow_releases(view.scheme, pool, self.shadows, derive(seed, "shadows")):
            per_shadow.append(seer.statistics(release))
            inside.append(rows[:n].to(per_shadow[-1].device))
            report("lira, shadow", len(per_shadow), self.shadows)
        statistics, within = torch.stack(per_shadow), torch.stack(inside)
        learned = [InOut.learn(statistics[:, :, place], within) for place in range(statistics.shape[2])]
        best = max(range(len(learned)), key=lambda place: learned[place].auc)
        return LiRAAttacker(seer, best, learned[best])


@dataclass(frozen=True, eq=False)
class LiRAAttacker(Attacker):
    """The view of releases, the number of its statistic, and its densities."""

    seer: CandidateDensities
    statistic: int
    learned: InOut

    def membership(self, sealed: Release) -> torch.Tensor:
        """Log likelihood ratios (n,) float64. Raises NotApplicable for another shape."""
        return self.learned.ratio(self.seer.statistics(sealed)[:, self.statistic])

    def notes(self) -> Mapping[str, int | float | str]:
        """The chosen statistic, and its success at telling members of shadow releases."""
        return {**described(self.statistic), "AUC on shadow releases": self.learned.auc}
