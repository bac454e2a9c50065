"""Marginal distance: change of columns' distributions by the release (CADP, figure 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from bench.evidence import TableEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import MATCHED, Comparison, compare, standard
from bench.types import Column, Metric, Score


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
        found = kolmogorov_smirnov(original, released, seed=derive(evidence.seed, "marginals"))
        parts = {name: found.column(k).score() for k, name in enumerate(evidence.columns)}
        return replace(found.score(), parts=parts)
