"""Linear probe on feature vectors: AUC, plain and under noise (CVAE paper)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from bench.evidence import LinearProbeEvidence
from bench.statistics.classification_scores import auc_score, mean_score
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


@dataclass(frozen=True)
class NoiseRobustAUC(Metric[LinearProbeEvidence]):
    """Mean AUC of a linear probe under noise of 1-3 deviations."""

    name: ClassVar[str] = "noise-robust-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = (
        "Di Salvo et al. 2024 (CVAE paper), section 4.3 and table 1; one unit of noise for all methods"
    )
    column: ClassVar[Column] = Column(
        title="AUC under noise",
        meaning="The linear probe's AUC where Gaussian noise of 1, 2 and 3 standard deviations of the original "
        "rows is added to test vectors: the mean of the three.",
        group="Utility",
        digits=3,
        chance="0.5",
        order=15,
    )
    on_request: ClassVar[bool] = True
    for_features: ClassVar[bool] = True

    def __call__(self, evidence: LinearProbeEvidence) -> Score:
        """Mean over the noisy levels; every level, 0 too, is a part.

        The levels share their test rows and keys.
        """
        by_level = {sigma: replace(auc_score(part), parts={}) for sigma, part in evidence.by_noise.items()}
        score = mean_score([score for sigma, score in by_level.items() if sigma > 0], "mean over the noisy levels")
        return replace(score, parts={f"sigma {sigma:g}": part for sigma, part in by_level.items()})
