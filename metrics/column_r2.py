"""Column R^2: regression of each column of a table on the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import TableEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import MATCHED, bootstrap_sums, bounds, matched, standard
from bench.types import Column, Metric, NotApplicable, Score

DRAWS = 1000
RIDGE = 1.0
"""On columns in standard units, summed over rows: the default of scikit-learn's Ridge."""


def predictions(train: torch.Tensor, test: torch.Tensor) -> torch.Tensor:
    """Each column of test (t, d), predicted from its other columns.

    Ridge regressions on train (n, d) make the prediction (t, d) float64. Columns are put in units of the training rows'
    deviation. With P the inverse of their Gram matrix plus the ridge, the coefficients for column j are -P[:, j] / P[j,
    j] (inverse of a block matrix), so that one inverse serves all.
    """
    std, mean = torch.std_mean(train.to(torch.float64), dim=0, correction=0)
    unit = torch.where((train != train[:1]).any(dim=0), std, 1.0)
    units = standard(train)
    inverse = torch.linalg.inv(units.T @ units + RIDGE * torch.eye(train.shape[1], dtype=torch.float64))
    weights = -inverse / inverse.diagonal()
    weights.fill_diagonal_(0)
    found: torch.Tensor = mean + unit * ((test.to(torch.float64) - mean) / unit @ weights)
    return found


@dataclass(frozen=True)
class ColumnR2(Metric[TableEvidence]):
    """Mean R^2 over columns of ridge regressions trained on the release."""

    name: ClassVar[str] = "column-r2"
    unit: ClassVar[str] = "R^2"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "ridge regression; coefficient of determination on raw rows of other people"
    column: ClassVar[Column] = Column(
        title="Column R²",
        meaning="How well a ridge regression of each column on the others, trained on released rows, predicts raw "
        "rows of other people: the mean over columns.",
        group="Released set",
        digits=3,
        order=40,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: TableEvidence) -> Score:
        """The mean R^2 over columns; it may be negative.

        R^2 = 1 - squared error / squared distance from the mean of the test rows. Parts: each column; the same after
        every released column was given the original's mean and deviation, for methods that release other units; the
        same trained on the original rows. Chance, 0, is to predict the mean of the test rows. Columns that are constant
        in the test rows are left out.

        Raises:
            NotApplicable: No column of the test rows varies, or there is only one column.
        """
        varies = (evidence.test != evidence.test[:1]).any(dim=0)
        if not bool(varies.any()) or len(varies) < 2:
            raise NotApplicable("R^2 needs two columns and test rows in which one of them varies")
        score = self._trained(evidence, evidence.released, varies)
        others = {
            MATCHED: matched(evidence.released, evidence.original),
            "trained on the original": evidence.original,
        }
        return replace(
            score,
            parts={**score.parts, **{name: self._trained(evidence, rows, varies) for name, rows in others.items()}},
        )

    def _trained(self, evidence: TableEvidence, train: torch.Tensor, varies: torch.Tensor) -> Score:
        test = evidence.test.to(torch.float64)
        lost = (test - predictions(train, test)).square()[:, varies]
        whole = (test - test.mean(dim=0)).square()[:, varies]
        values = 1 - lost.sum(dim=0) / whole.sum(dim=0)
        sums = bootstrap_sums(torch.cat((lost, whole), dim=1), None, DRAWS, seed=derive(evidence.seed, "column-r2"))
        # Of few test rows a draw may hold only such as lie at their mean, which R^2 says nothing of.
        spread = sums[:, len(values) :]
        drawn = 1 - sums[:, : len(values)] / torch.where(spread > 0, spread, torch.nan)
        names = [name for name, kept in zip(evidence.columns, varies.tolist(), strict=True) if kept]
        parts = {name: _score(values[k : k + 1], drawn[:, k : k + 1], len(test)) for k, name in enumerate(names)}
        return replace(_score(values, drawn, len(test)), parts=parts)


def _score(values: torch.Tensor, drawn: torch.Tensor, rows: int) -> Score:
    low, high = bounds(float(values.mean()), drawn.mean(dim=1), rows, most=1.0)
    return Score(float(values.mean()), low, high, rows, null=0.0, note="95 % bootstrap over test rows")
