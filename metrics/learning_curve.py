"""Learning curve: how well Bob does with less of the release (Syfer, appendix G)."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, Literal

from bench.evidence import LearningEvidence
from bench.statistics.auc_score import auc_score
from bench.types import Column, Metric, Score


@dataclass(frozen=True)
class LearningCurve(Metric[LearningEvidence]):
    """Utility AUC after training on parts of the release, averaged over the parts."""

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
        """Mean over the parts, each with the interval of `auc_score` as a part of the score.

        The parts share their test rows: their bounds are averaged as if fully dependent, which is the widest.
        """
        parts = {f"{fraction:.4g} of the release": auc_score(part) for fraction, part in evidence.curve.items()}
        scores = list(parts.values())
        low = fmean(score.value if score.low is None else score.low for score in scores)
        high = fmean(score.value if score.high is None else score.high for score in scores)
        return Score(
            fmean(score.value for score in scores), low, high, scores[0].n, null=0.5, parts=parts,
            note="mean over the parts; " + scores[0].note,
        )  # fmt: skip
