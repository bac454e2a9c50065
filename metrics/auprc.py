"""AUPRC: the area under the precision-recall curve, sensitive to rare findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.evidence import UtilityEvidence
from bench.statistics.classification_scores import finding_figure, ranked
from bench.types import Column, Metric, Score


@dataclass(frozen=True)
class AUPRC(Metric[UtilityEvidence]):
    """Mean over findings of the average precision of Bob's test predictions."""

    name: ClassVar[str] = "auprc"
    unit: ClassVar[str] = "precision"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "average precision, as in Davis and Goadrich 2006, without interpolation"
    column: ClassVar[Column] = Column(
        title="AUPRC",
        meaning="The area under the precision-recall curve of a model trained on the release: average precision on "
        "new images, the mean over findings.",
        group="Utility",
        digits=3,
        chance="the share of test rows with the finding",
        order=6,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: UtilityEvidence) -> Score:
        """`average_precision` of each finding. Raises NotApplicable if no finding has both classes."""
        return finding_figure(evidence, average_precision, chance=lambda prevalence: prevalence)


def average_precision(scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Precision at every distinct score, weighted by the recall that it adds.

    >>> import torch
    >>> ones = torch.ones(1, 4, dtype=torch.int64)
    >>> average_precision(torch.tensor([0.9, 0.8, 0.7, 0.1]), torch.tensor([1.0, 0.0, 1.0, 0.0]), ones).item()
    0.8333333333333333
    """
    positive, negative = (made.double() for made in ranked(scores, labels, weights))
    added = positive - torch.nn.functional.pad(positive, (1, 0))[:, :-1]
    precision = (positive / (positive + negative)).nan_to_num()  # no row so high in this draw: nothing is added
    total: torch.Tensor = (added * precision).sum(dim=1) / positive[:, -1]
    return total
