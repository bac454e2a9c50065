"""Utility AUC: how well a classifier trained on the release finds the findings in new images (Syfer, definition 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, Literal

import torch
from torch import Tensor

from bench.evidence import UtilityEvidence
from bench.seeds import derive
from bench.types import Metric, NotApplicable, Score
from metrics.resampling import LEVELS, draw_weights

DRAWS = 200
NUMBERS = 2_000_000  # of a block of weights: 16 MB


def auc(scores: Tensor, labels: Tensor, weights: Tensor | None = None) -> float | None:
    """Area under the ROC curve of one finding, unknown labels (NaN) left out; None where only one class is left.

    `weights` (n,) int64 says how often each row counts; None stands for once. Raises ValueError as `aucs`.
    """
    weights = torch.ones(len(labels), dtype=torch.int64) if weights is None else weights
    value = float(aucs(scores, labels, weights[None]))
    return None if math.isnan(value) else value


def aucs(scores: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """The same under each of several sets of weights (b, n) int64, (b,) float64; NaN where only one class is left.

    Counted in integers (Mann and Whitney 1947): every positive row wins over the negative rows below it and half wins
    over those it ties with. Rows are ranked once for all weights.

    Raises:
        ValueError: Labels other than 1, 0 and NaN, or scores that are not finite.
    """
    known = ~labels.isnan()
    truth, scores = labels[known], scores[known]
    if not bool(((truth == 0) | (truth == 1)).all()) or not bool(scores.isfinite().all()):
        raise ValueError("expected labels that are 1, 0 or NaN, and finite scores for the known ones")
    places, positive = known.nonzero()[:, 0], truth == 1
    tied = torch.unique(scores, return_inverse=True)[1]
    levels = int(tied.amax()) + 1 if len(tied) else 1
    found = torch.empty(len(weights), dtype=torch.float64)
    for block in torch.split(torch.arange(len(weights)), max(1, NUMBERS // max(1, len(places)))):
        times = weights[block][:, places]
        yes, no = (
            times.new_zeros(len(block), levels).index_add_(1, tied[side], times[:, side])
            for side in (positive, ~positive)
        )
        below = no.cumsum(dim=1)  # and tied
        wins = (yes * (2 * below - no)).sum(dim=1)
        found[block] = wins.double() / (2 * yes.sum(dim=1) * below[:, -1]).double()
    return found


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
        drawn = torch.empty(len(columns), DRAWS, dtype=torch.float64)
        for number, scores in enumerate(evidence.scores[:DRAWS]):  # the draws take the keys in turn
            turns = slice(number, None, len(evidence.scores))
            for row, k in zip(drawn, columns, strict=True):
                row[turns] = aucs(scores[:, k], evidence.labels[:, k], weights[turns])
        parts = {evidence.findings[k]: self._part(evidence, k, row) for row, k in zip(drawn, columns, strict=True)}
        means = drawn.nanmean(dim=0)
        low, high = torch.quantile(means[~means.isnan()], LEVELS).tolist()
        # Findings share their images: their deviations are averaged as if fully dependent, which is the widest.
        sd = fmean(part.null_high - 0.5 for part in parts.values() if part.null_high is not None)
        return Score(
            fmean(part.value for part in parts.values()), low, high, len(evidence.labels),
            null=0.5, null_low=max(0.0, 0.5 - sd), null_high=min(1.0, 0.5 + sd), parts=parts,
            note=f"95 % bootstrap over test people and {len(evidence.scores)} keys",
        )  # fmt: skip

    def _part(self, evidence: UtilityEvidence, k: int, drawn: Tensor) -> Score:
        labels = evidence.labels[:, k]
        positive, negative = int((labels == 1).sum()), int((labels == 0).sum())
        width = 1.96 * math.sqrt((positive + negative + 1) / (12 * positive * negative))
        values = [value for key in evidence.scores if (value := auc(key[:, k], labels)) is not None]
        low, high = torch.quantile(drawn[~drawn.isnan()], LEVELS).tolist()
        return Score(
            fmean(values), low, high, positive + negative,
            null=0.5, null_low=max(0.0, 0.5 - width), null_high=min(1.0, 0.5 + width),
        )  # fmt: skip
