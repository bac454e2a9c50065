"""Utility AUC: how well a classifier trained on the release finds the findings in new images (Syfer, definition 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, Literal

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from bench.evidence import UtilityEvidence
from bench.seeds import derive
from bench.types import Metric, NotApplicable, Score
from metrics.resampling import LEVELS, draw_weights

DRAWS = 200


def auc(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> float | None:
    """Area under the ROC curve of one finding, unknown labels (NaN) left out; None where only one class is left."""
    known = ~labels.isnan() if weights is None else ~labels.isnan() & (weights > 0)
    truth = labels[known]
    if len(truth) == 0 or truth.amin() == truth.amax():
        return None
    return float(roc_auc_score(truth, scores[known], sample_weight=None if weights is None else weights[known]))


@dataclass(frozen=True)
class UtilityAUC(Metric[UtilityEvidence]):
    """Mean test AUC over the findings of the best classifier that Bob can choose on held-out data."""

    name: ClassVar[str] = "utility-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Syfer, definition 1 and section 5"

    def __call__(self, evidence: UtilityEvidence) -> Score:
        """Mean over findings and keys, each finding as a part; the interval bootstraps test people and keys.

        Raises:
            NotApplicable: No finding has both classes among the test rows.
        """
        columns = [
            k for k in range(len(evidence.findings)) if auc(evidence.scores[0][:, k], evidence.labels[:, k]) is not None
        ]
        if not columns:
            raise NotApplicable("utility needs a finding with positive and negative test rows, and there is none")
        weights = draw_weights(evidence.subjects, len(evidence.labels), DRAWS, seed=derive(evidence.seed, "utility"))
        drawn = [
            {
                k: auc(evidence.scores[draw % len(evidence.scores)][:, k], evidence.labels[:, k], weights[draw])
                for k in columns
            }
            for draw in range(DRAWS)
        ]
        parts = {evidence.findings[k]: self._part(evidence, k, [each[k] for each in drawn]) for k in columns}
        means = [fmean(known) for each in drawn if (known := [value for value in each.values() if value is not None])]
        low, high = torch.quantile(torch.tensor(means, dtype=torch.float64), LEVELS).tolist()
        # Findings share their images: their deviations are averaged as if fully dependent, which is the widest.
        sd = fmean(part.null_high - 0.5 for part in parts.values() if part.null_high is not None)
        return Score(
            fmean(part.value for part in parts.values()), low, high, len(evidence.labels),
            null=0.5, null_low=max(0.0, 0.5 - sd), null_high=min(1.0, 0.5 + sd), parts=parts,
            note=f"95 % bootstrap over test people and {len(evidence.scores)} keys",
        )  # fmt: skip

    def _part(self, evidence: UtilityEvidence, k: int, drawn: list[float | None]) -> Score:
        labels = evidence.labels[:, k]
        positive, negative = int((labels == 1).sum()), int((labels == 0).sum())
        width = 1.96 * math.sqrt((positive + negative + 1) / (12 * positive * negative))
        values = [value for key in evidence.scores if (value := auc(key[:, k], labels)) is not None]
        known = torch.tensor([value for value in drawn if value is not None], dtype=torch.float64)
        low, high = torch.quantile(known, LEVELS).tolist()
        return Score(
            fmean(values), low, high, positive + negative,
            null=0.5, null_low=max(0.0, 0.5 - width), null_high=min(1.0, 0.5 + width),
        )  # fmt: skip
