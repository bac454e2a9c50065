"""Utility AUC: findings in new images after training (Syfer, definition 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from bench.evidence import UtilityEvidence
from bench.statistics.classification_scores import auc_score
from bench.types import Column, Metric, Score


@dataclass(frozen=True)
class UtilityAUC(Metric[UtilityEvidence]):
    """Mean test AUC over findings of Bob's best classifier by held-out data."""

    name: ClassVar[str] = "utility-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Syfer, definition 1 and section 5"
    column: ClassVar[Column] = Column(
        title="Utility AUC",
        meaning="How well a model trained on the release finds the findings in new images: area under the ROC "
        "curve, the mean over findings.",
        group="Utility",
        digits=3,
        chance="0.5",
        order=5,
    )

    def __call__(self, evidence: UtilityEvidence) -> Score:
        """`auc_score` over findings and keys, each finding as a part.

        The interval is over test people and keys. The note says what the model comes to that was chosen without
        anybody's labels but the release's.

        Raises:
            NotApplicable: No finding has both classes among the test rows.
        """
        score = auc_score(evidence)
        if not evidence.outsiders:
            return score
        other = auc_score(replace(evidence, scores=evidence.outsiders, outsiders=()))
        span = "" if other.low is None or other.high is None else f" ({other.low:.3f} to {other.high:.3f})"
        note = (
            f"{score.note}; chosen by the labels of control people; chosen by held-out released rows, as an outsider "
            f"can: {other.value:.3f}{span}"
        )
        return replace(score, note=note)
