"""Sensitivity at 90 % specificity: positives found with a tenth false alarms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.evidence import UtilityEvidence
from bench.statistics.classification_scores import finding_figure, ranked
from bench.types import Column, Metric, Score

ALARMS = 0.1


@dataclass(frozen=True)
class Sensitivity(Metric[UtilityEvidence]):
    """Mean share of positive test rows found at 90 % specificity."""

    name: ClassVar[str] = "sensitivity"
    unit: ClassVar[str] = "share of positive rows"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "a point of the ROC curve, without interpolation"
    column: ClassVar[Column] = Column(
        title="Sensitivity at 90 % specificity",
        meaning="The share of new images with a finding that a model trained on the release finds where it wrongly "
        "alarms on at most a tenth of the others, the mean over findings.",
        group="Utility",
        digits=3,
        chance="0.1",
        order=7,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: UtilityEvidence) -> Score:
        """`found_at` of each finding. Raises NotApplicable if no finding has both classes."""
        return finding_figure(evidence, found_at, chance=lambda prevalence: ALARMS)


def found_at(scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The largest share of positives above a threshold, at 90 % specificity.

    At most a tenth of the negative rows reach the threshold. Rows that tie stand on one side of any threshold. NaN
    if a draw has no row of one class.

    >>> import torch
    >>> ones = torch.ones(1, 4, dtype=torch.int64)
    >>> found_at(torch.tensor([0.9, 0.8, 0.7, 0.1]), torch.tensor([1.0, 0.0, 1.0, 0.0]), ones).item()
    0.5
    """
    positive, negative = ranked(scores, labels, weights)
    allowed = 10 * negative <= negative[:, -1:]  # ALARMS, in whole numbers
    most = (positive * allowed).amax(dim=1).double()
    found: torch.Tensor = most / positive[:, -1]
    return found.where(negative[:, -1] > 0, float("nan"))
