"""Correlation distance: the change of a table's correlations by its release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.evidence import TableEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import compare, correlations, standard
from bench.types import Column, Metric, NotApplicable, Score


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
