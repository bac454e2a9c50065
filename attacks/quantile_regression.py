"""Quantile regression: how far a candidate exceeds what outsiders like it reach.

Source: Bertran et al. 2023, "Scalable membership inference attacks via quantile regression" (NeurIPS): a model learns
the distribution of the attacked model's score of x, given x, on rows that are known to be outside; no reference model
is trained. Here the Gaussian form (section 3): mean and deviation of the score as functions of x.

Differences:
- The score is minus the log distance from x to the nearest released row of its class, as `dcr` takes it.
- Both functions are boosted trees (scikit-learn) of the row's place along principal axes and its distance to the
  nearest known outsider: a row far from all others is far from released rows too. Errors of outsiders are out of fold.

It makes no release of her own, so that it needs no scheme. With few outsiders the trees have one leaf, and it is `dcr`
with another unit; `notes` gives the share of the score's variance among outsiders that the regression foresees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch

from bench.eve.channel import PrincipalSpace
from bench.eve.own_releases import own_rows
from bench.rows.row_sets import drawn, joined
from bench.statistics.nearest_rows import in_one_space, log_distances, nearest, nearest_in_class
from bench.types import Attack, Attacker, Dataset, NotApplicable, Parameter, Release, View
from bench.validation import at_least

if TYPE_CHECKING:
    import numpy.typing as npt

FOLDS = 5
FEWEST = 20
ROWS = 1024


@dataclass(frozen=True)
class QuantileRegression(Attack):
    """Nearness to released rows, beyond what outsiders like the candidate have.

    Args:
        axes: Principal axes that describe a row, at most.
        draws: Rows drawn from a published generator, as a multiple of the released rows; 0 draws none.
    """

    name: ClassVar[str] = "quantile-regression"
    source: ClassVar[str] = "Bertran et al. 2023, section 3, the Gaussian form"
    scores: ClassVar[Literal["pairs", "membership"]] = "membership"
    knowledge: ClassVar[str] = (
        "the candidates, the release (a generator where one is published), and rows of the same kind outside it"
    )
    needs_public: ClassVar[bool] = False
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"smoke": {"draws": 1}}

    axes: int = 8
    draws: int = 10

    def __post_init__(self) -> None:
        at_least(1, axes=self.axes)
        at_least(0, draws=self.draws)

    def fit(self, view: View, seed: int) -> QuantileRegressionAttacker:
        """Describe candidates and outsiders.

        Raises:
            NotApplicable: Fewer than `FEWEST` rows are known to be outside.
        """
        own = own_rows(view)
        if len(own) < FEWEST:
            raise NotApplicable(
                f"a regression needs at least {FEWEST} rows known to be outside, and Eve has {len(own)}"
            )
        space = PrincipalSpace.of(own.samples, self.axes, whiten=True)
        rows = joined(view.candidates, own)
        outside = space.coordinates(own.samples)
        places = space.coordinates(rows.samples)
        apart = torch.cat((nearest(places[: len(view.candidates)], outside), _nearest_other(outside).cpu()))
        described = torch.cat((places.cpu(), apart[:, None].log1p()), dim=1).numpy()
        return QuantileRegressionAttacker(rows, described, len(view.candidates), self.draws, seed)


def _nearest_other(rows: torch.Tensor) -> torch.Tensor:
    """Distance (n,) of each row (n, q) to the nearest other one."""
    found = []
    for number in torch.split(torch.arange(len(rows), device=rows.device), ROWS):
        apart = torch.cdist(rows[number], rows, compute_mode="donot_use_mm_for_euclid_dist")
        apart[torch.arange(len(number), device=rows.device), number] = torch.inf
        found.append(apart.amin(dim=1))
    return torch.cat(found)


@dataclass(frozen=True, eq=False)
class QuantileRegressionAttacker(Attacker):
    """Candidates and outsiders, and their descriptions.

    Args:
        rows: Both.
        described: (n + outsiders, axes + 1) float64.
        candidates: The first n.
        draws: Of a published generator.
        seed: Of the draws and the folds.
    """

    rows: Dataset
    described: npt.NDArray[np.float64]
    candidates: int
    draws: int
    seed: int
    foreseen: list[float] = field(default_factory=list)

    def membership(self, sealed: Release) -> torch.Tensor:
        """Standardised excess (n,) float64. Raises NotApplicable for another shape."""
        release = drawn(sealed, self.draws, self.seed)
        rows, released = in_one_space(self.rows.samples, release.samples)
        score = -log_distances(nearest_in_class(rows, released, self.rows.labels, release.labels)).numpy()
        known, row = self.described[self.candidates :], self.described[: self.candidates]
        outside = score[self.candidates :]
        mean, foreseen = self._regressed(known, outside, row)
        errors = outside - foreseen
        spread, _ = self._regressed(known, np.abs(errors), row)
        variance = float(outside.var())
        self.foreseen.append(1 - float(errors.var()) / variance if variance else 0.0)
        least = float(np.abs(errors).mean()) / 10 or 1.0
        return torch.from_numpy((score[: self.candidates] - mean) / np.maximum(spread, least))

    def _regressed(
        self, known: npt.NDArray[np.float64], values: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Values foreseen for rows, and out of fold for the known ones."""
        from sklearn.ensemble import HistGradientBoostingRegressor  # takes a second to import
        from sklearn.model_selection import KFold, cross_val_predict

        trees = HistGradientBoostingRegressor(random_state=0, early_stopping=False, max_iter=50)
        folds = KFold(FOLDS, shuffle=True, random_state=self.seed % 2**32)
        return trees.fit(known, values).predict(rows), cross_val_predict(trees, known, values, cv=folds)

    def notes(self) -> Mapping[str, int | float | str]:
        """The share of variance that the regression foresaw under the last key."""
        return {"share of variance foreseen": self.foreseen[-1]} if self.foreseen else {}
