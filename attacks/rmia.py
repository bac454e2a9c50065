"""RMIA: how many known outsiders a candidate outdoes, calibrated by few references.

Source: Zarifzadeh, Liu and Shokri 2024, "Low-cost high-power membership inference attacks" (ICML): a candidate x beats
an outsider z if p(model|x) / p(model|z) is at least gamma, with p(model|x) proportional to p(x|model) / p(x)
(equation 3), and p(x) the mean over reference models (equation 6); the score is the share of outsiders that it beats
(equation 2).

Differences:
- Models are releases: p(x|model) is the density of the released rows at x (`bench.eve.candidate_densities`), and
  reference models are releases that Eve, the attacker, makes under her own keys: of halves of the candidates and
  control rows (online), or of her own rows alone (offline).
- Densities have no unit in many dimensions, so gamma is 1. Then ranks among candidates do not depend on the outsiders;
  the share still makes scores of different keys alike.
- The kernel, columns and rows of a density are those that best tell rows in a reference release from rows outside it,
  each judged by the others. Columns that hardly vary may be left out, since noise in them drowns all others.
- Candidates level with each other in outsiders beaten are ordered by their ratios.
- With references of Eve's own rows alone the paper corrects p(x), for a model trained on x is likelier than average. A
  factor for all candidates would change no rank.

It needs a quarter of the releases that `lira` makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.eve.candidate_densities import CandidateDensities, described
from bench.eve.own_releases import own_rows, shadow_releases
from bench.progress import report
from bench.rows.row_sets import joined
from bench.seeds import derive
from bench.statistics.classification_scores import auc
from bench.statistics.nearest_rows import VARYING
from bench.types import Attack, Attacker, Parameter, Release, View
from bench.validation import at_least

REFERENCES = 2, 4
FLOORS = 0.0, VARYING


@dataclass(frozen=True)
class RMIA(Attack):
    """Share of known outsiders that a candidate's calibrated density outdoes.

    Args:
        references: Reference releases, 2 or 4.
        online: Reference releases are of halves of candidates and control rows; else of halves of her own rows.
        draws: Rows drawn from a published generator, as a multiple of the released rows; 0 draws none.
    """

    name: ClassVar[str] = "rmia"
    source: ClassVar[str] = "Zarifzadeh, Liu and Shokri 2024, equations 2, 3 and 6, on reference releases"
    scores: ClassVar[Literal["pairs", "membership"]] = "membership"
    makes_releases = True
    knowledge: ClassVar[str] = (
        "the candidates, the control rows, the release (a generator where one is published) and the scheme, which she "
        "runs on halves of those rows a few times"
    )
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"references": 2, "draws": 1}}

    references: int = 4
    online: bool = True
    draws: int = 4

    def __post_init__(self) -> None:
        if self.references not in REFERENCES:
            raise ValueError(f"references must be {' or '.join(map(str, REFERENCES))}, got {self.references}")
        at_least(0, draws=self.draws)

    def fit(self, view: View, seed: int) -> RMIAAttacker:
        """Release halves a few times, and choose a density by them.

        Raises:
            NotApplicable: Released rows have another shape than candidates, or the scheme cannot release a half.
        """
        own = own_rows(view)  # control rows come first
        pool = joined(view.candidates, view.control) if self.online else own
        rows = joined(view.candidates, own)
        sights = [CandidateDensities(rows, own.samples, self.draws, derive(seed, "draws"), floor) for floor in FLOORS]
        first = 0 if self.online else len(view.candidates)
        found, inside = [], []
        for within, release in shadow_releases(view.scheme, pool, self.references, derive(seed, "references")):
            found.append(torch.cat([sight.statistics(release) for sight in sights], dim=1))
            inside.append(within.cpu())
            report("rmia, reference", len(found), self.references)
        statistics = torch.stack(found)
        areas = [
            _told(statistics[:, first : first + len(pool), place], torch.stack(inside))
            for place in range(statistics.shape[2])
        ]
        best = max(range(len(areas)), key=areas.__getitem__)
        sight, place = divmod(best, statistics.shape[2] // len(sights))
        return RMIAAttacker(sights[sight], len(view.candidates), place, areas[best], _log_mean(statistics[:, :, best]))


def _told(statistics: torch.Tensor, inside: torch.Tensor) -> float:
    """AUC for rows inside reference releases, each judged by the others.

    Args:
        statistics: (r, n) float64, log densities of releases at rows.
        inside: (r, n) bool.
    """
    areas = []
    for number, (own, within) in enumerate(zip(statistics, inside, strict=True)):
        others = torch.cat((statistics[:number], statistics[number + 1 :]))
        area = auc((own - _log_mean(others)).cpu(), within.double())
        areas.append(0.5 if area is None else area)
    return sum(areas) / len(areas)


def _log_mean(statistics: torch.Tensor) -> torch.Tensor:
    """Log of the mean density (n,) of log densities (r, n)."""
    return statistics.logsumexp(dim=0) - math.log(len(statistics))


def outdone(ratios: torch.Tensor, outsiders: torch.Tensor) -> torch.Tensor:
    """Shares (n,) float64 of outsiders (z,) not above each candidate.

    Candidates with one share are ordered by their ratios, closer together than any two shares.

    >>> outdone(torch.tensor([0.0, 2.0, 3.0]), torch.tensor([1.0, 1.5])).tolist()
    [0.0, 1.125, 1.25]
    """
    ordered = outsiders.contiguous().sort().values
    below = torch.searchsorted(ordered, ratios.contiguous(), right=True).double()
    ranks = torch.unique(ratios, return_inverse=True)[1].double()
    shares: torch.Tensor = (below + ranks / (len(ratios) + 1)) / max(1, len(ordered))
    return shares


@dataclass(frozen=True, eq=False)
class RMIAAttacker(Attacker):
    """The density at candidates and outsiders, and its reference.

    Args:
        sight: Densities of a release at those rows.
        candidates: The first n rows of them.
        statistic: Number of the density that is used.
        auc: Its AUC for rows inside reference releases.
        reference: (n + outsiders,) float64, log p(x).
    """

    sight: CandidateDensities
    candidates: int
    statistic: int
    auc: float
    reference: torch.Tensor

    def membership(self, sealed: Release) -> torch.Tensor:
        """Shares of outsiders outdone (n,) float64. Raises NotApplicable for another shape."""
        ratios = self.sight.statistics(sealed)[:, self.statistic] - self.reference
        return outdone(ratios[: self.candidates], ratios[self.candidates :])

    def notes(self) -> Mapping[str, int | float | str]:
        """The chosen density, and its success at telling rows of reference releases."""
        return {
            **described(self.statistic),
            "columns": "all" if self.sight.floor == 0 else "without those that hardly vary",
            "AUC on reference releases": self.auc,
        }
