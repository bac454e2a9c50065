"""Linear-probe AUC: findings in new vectors, by one layer (CVAE paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from bench.evidence import LinearProbeEvidence
from bench.statistics.classification_scores import auc_score
from bench.types import Column, Metric, Score


@dataclass(frozen=True)
class LinearProbeAUC(Metric[LinearProbeEvidence]):
    """Mean test AUC over findings of a linear probe on the release."""

    name: ClassVar[str] = "linear-probe-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Di Salvo et al. 2024 (CVAE paper), section 4.2 and figure 2"
    column: ClassVar[Column] = Column(
        title="Linear probe AUC",
        meaning="How well one linear layer, trained on released feature vectors, finds the findings in new "
        "images: area under the ROC curve, the mean over findings and three seeds.",
        group="Utility",
        digits=3,
        chance="0.5",
        order=10,
    )
    on_request: ClassVar[bool] = True
    for_features: ClassVar[bool] = True

    def __call__(self, evidence: LinearProbeEvidence) -> Score:
        """`auc_score` without noise: mean over findings and seeds; findings as parts."""
        return auc_score(evidence.by_noise[0.0])
