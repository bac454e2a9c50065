"""Expected calibration error: the gap between predicted probabilities and actual frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.evidence import UtilityEvidence
from bench.statistics.classification_scores import finding_figure, require_probabilities
from bench.types import Column, Metric, Score

BINS = 10


@dataclass(frozen=True)
class CalibrationError(Metric[UtilityEvidence]):
    """Mean over the findings of the expected calibration error, ten bins."""

    name: ClassVar[str] = "calibration-error"
    unit: ClassVar[str] = "probability"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Naeini et al. 2015; Guo et al. 2017, equation 3, for the probability of a finding"
    column: ClassVar[Column] = Column(
        title="Calibration error",
        meaning="How far the probabilities that a model trained on the release gives new images are from how often "
        "the finding is there (ECE, ten bins), the mean over findings.",
        group="Utility",
        digits=3,
        chance="",
        order=9,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: UtilityEvidence) -> Score:
        """`calibration_error` of each finding.

        Raises NotApplicable if no finding has both classes, or predictions are no probabilities.
        """
        require_probabilities(evidence)
        return finding_figure(
            evidence, calibration_error, chance=None,
            note="above 0 for a perfect model too where rows are few; test rows keep their natural share of findings",
        )  # fmt: skip


def calibration_error(scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The mean over rows of |mean probability - frequency| of their bin.

    Bins have equal width. A bin holds its lower end; the last one holds both ends.

    >>> import torch
    >>> ones = torch.ones(1, 2, dtype=torch.int64)
    >>> round(calibration_error(torch.tensor([0.95, 0.15]), torch.tensor([1.0, 0.0]), ones).item(), 3)
    0.1
    """
    bins = (scores * BINS).long().clamp(0, BINS - 1)
    gaps = torch.zeros(len(scores), BINS, dtype=torch.float64)
    gaps[torch.arange(len(scores)), bins] = (scores - labels).double()
    times = weights.double()
    return (times @ gaps).abs().sum(dim=1) / times.sum(dim=1)
