"""Mean AUC: how well a classifier finds the findings in test rows, averaged over findings and keys, as a score."""

from __future__ import annotations

import math
from statistics import fmean

import torch
from torch import Tensor

from bench.evidence import UtilityEvidence
from bench.seeds import derive
from bench.statistics.resampling import LEVELS, draw_weights
from bench.statistics.roc import auc, aucs
from bench.types import NotApplicable, Score

DRAWS = 200


def auc_score(evidence: UtilityEvidence) -> Score:
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
    parts = {evidence.findings[k]: _part(evidence, k, row) for row, k in zip(drawn, columns, strict=True)}
    means = drawn.nanmean(dim=0)
    low, high = torch.quantile(means[~means.isnan()], LEVELS).tolist()
    # Findings share their images: their deviations are averaged as if fully dependent, which is the widest.
    sd = fmean(part.null_high - 0.5 for part in parts.values() if part.null_high is not None)
    return Score(
        fmean(part.value for part in parts.values()), low, high, len(evidence.labels),
        null=0.5, null_low=max(0.0, 0.5 - sd), null_high=min(1.0, 0.5 + sd), parts=parts,
        note=f"95 % bootstrap over test people and {len(evidence.scores)} keys",
    )  # fmt: skip


def _part(evidence: UtilityEvidence, k: int, drawn: Tensor) -> Score:
    labels = evidence.labels[:, k]
    positive, negative = int((labels == 1).sum()), int((labels == 0).sum())
    width = 1.96 * math.sqrt((positive + negative + 1) / (12 * positive * negative))
    values = [value for key in evidence.scores if (value := auc(key[:, k], labels)) is not None]
    low, high = torch.quantile(drawn[~drawn.isnan()], LEVELS).tolist()
    return Score(
        fmean(values), low, high, positive + negative,
        null=0.5, null_low=max(0.0, 0.5 - width), null_high=min(1.0, 0.5 + width),
    )  # fmt: skip
