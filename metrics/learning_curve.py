"""Learning curve: Bob's utility with less of the release (Syfer, appendix G)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from bench.evidence import LearningEvidence
from bench.statistics.classification_scores import auc_score, mean_score
from bench.types import Column, Metric, Score


@dataclass(frozen=True)
class LearningCurve(Metric[LearningEvidence]):
    """Mean utility AUC after training on parts of the release."""

    name: ClassVar[str] = "learning-curve"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Syfer, appendix G and figure 6"
    column: ClassVar[Column] = Column(
        title="Learning curve",
        meaning="Utility AUC after training on parts of the release, averaged over the parts: how well Bob does "
        "with less.",
        group="Utility",
        digits=3,
        chance="0.5",
        order=20,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: LearningEvidence) -> Score:
        """Mean over the parts; each has its `auc_score` with its interval."""
        parts = {f"{fraction:.4g} of the release": auc_score(part) for fraction, part in evidence.curve.items()}
        return replace(mean_score(list(parts.values()), "mean over the parts"), parts=parts)
