"""Columns of a table: marginals, correlations, and regressions on each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import TableEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import (
    MATCHED,
    Comparison,
    bootstrap_sums,
    bounds,
    compare,
    correlations,
    matched,
    standard,
)
from bench.types import Column, Metric, NotApplicable, Score

DRAWS = 1000
RIDGE = 1.0
"""On columns in standard units, summed over rows: the default of scikit-learn's Ridge."""


def kolmogorov_smirnov(original: torch.Tensor, released: torch.Tensor, *, seed: int) -> Comparison:
    """By column, the Kolmogorov-Smirnov distance; ties count together.

    That is max over v of |share of the original <= v - share of the released <= v|.

    Args:
        original, released: (n, d) and (m, d).
        seed: For the bootstrap and the exchanges.
    """
    n, m = len(original), len(released)
    ordered, order = torch.cat((original.to(torch.float64), released.to(torch.float64))).sort(dim=0)
    whole = torch.ones_like(order)
    whole[:-1] = ordered[:-1] != ordered[1:]  # no share is read in the middle of a tie

    def figure(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        gaps = (first * m - second * n)[order].cumsum(dim=0) * whole
        return gaps.abs().amax(dim=0).to(torch.float64) / (n * m)

    return compare(figure, n=n, m=m, seed=seed)


@dataclass(frozen=True)
class MarginalDistance(Metric[TableEvidence]):
    """Mean Kolmogorov-Smirnov distance between original and released columns."""

    name: ClassVar[str] = "marginal-distance"
    unit: ClassVar[str] = "share of rows"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Kolmogorov-Smirnov, two samples; stands for the histograms of the CADP paper, figure 6"
    column: ClassVar[Column] = Column(
        title="Marginals differ",
        meaning="The Kolmogorov-Smirnov distance between original and released values, the mean over columns of a "
        "table.",
        group="Released set",
        digits=3,
        chance="what two draws from one set of people give",
        order=30,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: TableEvidence) -> Score:
        """The mean in the release's own numbers, each column as a part.

        A method may release other units (standardised columns, say), which nothing tells apart from damage: a further
        part compares both in units of their own deviations about their own means. Chance is what two samples of
        one population would give; a figure below it means rows that are closer than that, such as the rows themselves.
        """
        # In standard units equal numbers may differ by a rounding error, which must not part them.
        units = (torch.round(standard(rows), decimals=4) for rows in (evidence.original, evidence.released))
        score = self._columns(evidence, evidence.original, evidence.released)
        return replace(score, parts={**score.parts, MATCHED: self._columns(evidence, *units)})

    def _columns(self, evidence: TableEvidence, original: torch.Tensor, released: torch.Tensor) -> Score:
        comparison = kolmogorov_smirnov(original, released, seed=derive(evidence.seed, "marginals"))
        parts = {name: comparison.column(k).score() for k, name in enumerate(evidence.columns)}
        return replace(comparison.score(), parts=parts)


@dataclass(frozen=True)
class CorrelationDistance(Metric[TableEvidence]):
    """Mean absolute difference of the columns' Pearson correlations, original against released."""

    name: ClassVar[str] = "correlation-distance"
    unit: ClassVar[str] = "correlation"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Pearson; mean absolute difference over pairs of columns"
    column: ClassVar[Column] = Column(
        title="Correlations differ",
        meaning="The mean absolute difference of correlations between columns, original against released.",
        group="Released set",
        digits=3,
        chance="what two draws from one set of people give",
        order=35,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: TableEvidence) -> Score:
        """The mean over pairs of columns that vary in the original.

        The units of the release do not matter. A column that is constant in the release correlates with nothing: 0.
        Chance is what two samples of one population would give. Raises NotApplicable if fewer than two columns of
        the original vary.
        """
        varies = (evidence.original != evidence.original[:1]).any(dim=0)
        pairs = torch.triu(varies[:, None] & varies, diagonal=1)
        if not bool(pairs.any()):
            raise NotApplicable("correlations need two columns that vary, and the original has fewer")
        pool = torch.cat((standard(evidence.original), standard(evidence.released)))

        def figure(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
            apart = (correlations(pool, first) - correlations(pool, second)).abs()[pairs].mean(dim=0, keepdim=True)
            return apart.round(decimals=9)  # the same rows in another order are not apart

        seed = derive(evidence.seed, "correlations")
        return compare(figure, n=len(evidence.original), m=len(evidence.released), seed=seed).score()


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
    predicted: torch.Tensor = mean + unit * ((test.to(torch.float64) - mean) / unit @ weights)
    return predicted


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
        others = {MATCHED: matched(evidence.released, evidence.original), "trained on the original": evidence.original}
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
        names = [name for name, varying in zip(evidence.columns, varies.tolist(), strict=True) if varying]
        parts = {name: _score(values[k : k + 1], drawn[:, k : k + 1], len(test)) for k, name in enumerate(names)}
        return replace(_score(values, drawn, len(test)), parts=parts)


def _score(values: torch.Tensor, drawn: torch.Tensor, rows: int) -> Score:
    low, high = bounds(float(values.mean()), drawn.mean(dim=1), rows, most=1.0)
    return Score(float(values.mean()), low, high, rows, null=0.0, note="95 % bootstrap over test rows")
