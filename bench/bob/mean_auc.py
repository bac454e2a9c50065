"""How well predictions order rows, the mean over findings: what Bob's models are chosen by."""

from __future__ import annotations

import torch

from bench.statistics.roc import aucs

STEPS = 1000
"""Of a soft label: a mixed row counts so many thousandths as positive, the rest as negative."""


def mean_auc(scores: torch.Tensor, labels: torch.Tensor) -> float:
    """The mean, over findings with both classes, of the AUC of scores (n, k) against labels (n, k).

    NaN labels are left out. A label between 0 and 1 makes its row count in part as positive, in part as negative.
    Raises ValueError if no finding has both classes.
    """
    findings = judged_findings(labels)
    if not findings:
        raise ValueError("no finding has rows of both classes")
    found = [_auc(scores[:, column].cpu(), labels[:, column].cpu()) for column in findings]
    return sum(found) / len(found)


def judged_findings(labels: torch.Tensor) -> list[int]:
    """The columns of labels (n, k) in which rows count as positive and rows count as negative."""
    both = (labels > 0).any(dim=0) & (labels < 1).any(dim=0)
    return [int(column) for column in both.nonzero()[:, 0]]


def _auc(scores: torch.Tensor, labels: torch.Tensor) -> float:
    known = ~labels.isnan()
    scores, share = scores[known], (labels[known] * STEPS).round().long()
    truth = torch.cat((torch.ones(len(share)), torch.zeros(len(share))))
    return float(aucs(scores.repeat(2), truth, torch.cat((share, STEPS - share))[None]))
