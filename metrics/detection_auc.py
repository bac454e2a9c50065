"""Detection AUC: abnormal against normal by a density ratio (DP-GLOW, section 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from bench.evidence import DetectionEvidence
from bench.statistics.classification_scores import auc_score
from bench.types import Column, Metric, Score


@dataclass(frozen=True)
class DetectionAUC(Metric[DetectionEvidence]):
    """AUC of abnormal against normal released images by raw public densities."""

    name: ClassVar[str] = "detection-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "DP-GLOW, section 5 and table 3, after Shibata et al."
    column: ClassVar[Column] = Column(
        title="Detection AUC",
        meaning="How well two density models, one of normal and one of all public images, tell abnormal from "
        "normal released images without any classifier.",
        group="Utility",
        digits=3,
        chance="0.5",
        order=35,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: DetectionEvidence) -> Score:
        """AUC on released rows, that on raw rows as a part.

        The interval bootstraps people.

        Raises:
            NotApplicable: The rows are all normal or all abnormal.
        """
        (released,) = auc_score(evidence.released).parts.values()
        (raw,) = auc_score(evidence.original).parts.values()
        return replace(released, parts={"raw image": raw}, note="95 % bootstrap over people")
