"""Scores of Bob's predictions: AUPRC, sensitivity, Brier score, and calibration error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.evidence import UtilityEvidence
from bench.statistics.classification_scores import finding_figure, ranked, require_probabilities
from bench.types import Column, Metric, Score

ALARMS = 0.1

BINS = 10


@dataclass(frozen=True)
class AUPRC(Metric[UtilityEvidence]):
    """Mean over findings of the average precision of Bob's test predictions.

    It is the area under the precision-recall curve, which rare findings move.
    """

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
    positive, negative = (counts.double() for counts in ranked(scores, labels, weights))
    added = positive - torch.nn.functional.pad(positive, (1, 0))[:, :-1]
    precision = (positive / (positive + negative)).nan_to_num()  # no row so high in this draw: nothing is added
    total: torch.Tensor = (added * precision).sum(dim=1) / positive[:, -1]
    return total


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
    share: torch.Tensor = most / positive[:, -1]
    return share.where(negative[:, -1] > 0, float("nan"))


@dataclass(frozen=True)
class Brier(Metric[UtilityEvidence]):
    """Mean over the findings of the squared error of predicted probabilities."""

    name: ClassVar[str] = "brier"
    unit: ClassVar[str] = "squared probability"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Brier 1950"
    column: ClassVar[Column] = Column(
        title="Brier score",
        meaning="The mean squared error of the probabilities that a model trained on the release gives new images, "
        "the mean over findings.",
        group="Utility",
        digits=3,
        chance="p (1 - p) where a share p of test rows has the finding, and every row is told p",
        order=8,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: UtilityEvidence) -> Score:
        """`squared_error` of each finding.

        Raises NotApplicable if no finding has both classes, or predictions are no probabilities.
        """
        require_probabilities(evidence)
        return finding_figure(
            evidence, squared_error, chance=lambda prevalence: prevalence * (1 - prevalence),
            note="test rows keep their natural share of findings, which balanced training rows do not have",
        )  # fmt: skip


def squared_error(scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The weighted mean of (probability - label)^2.

    >>> import torch
    >>> squared_error(torch.tensor([0.5, 1.0]), torch.tensor([1.0, 1.0]), torch.ones(1, 2, dtype=torch.int64)).item()
    0.125
    """
    times = weights.double()
    return times @ (scores - labels).square().double() / times.sum(dim=1)


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
