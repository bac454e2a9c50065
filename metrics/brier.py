"""Brier score: the mean squared error of predicted probabilities (Brier 1950)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.evidence import UtilityEvidence
from bench.statistics.classification_scores import finding_figure, require_probabilities
from bench.types import Column, Metric, Score


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
