"""The simplest models that anybody would try on a release, through another library than Bob: what he is held against.

scikit-learn's logistic regression, on released rows and on means of 2x2, 4x4 and 8x8 of their pixels, with five
penalties, a model a finding; a row with a soft label counts in part for each side.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from bench.bob.model_selection import Decode, judged_findings, mean_auc
from bench.statistics.bootstrap import draw_weights
from bench.statistics.classification_scores import aucs
from bench.types import NotApplicable, Release

SIDES = (1, 2, 4, 8)
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""scikit-learn's C times a sixteenth of the columns."""
STEPS = 300
DRAWS = 400
WORTH = 0.02
"""A lead of a simple model that is no matter."""
SURE = 0.025


@dataclass(frozen=True, eq=False)
class SimpleModel:
    """The best of them on dev rows.

    Args:
        name: What it reads and how strongly it is held back.
        dev_auc: Its mean AUC on dev rows.
        scores: Decoded predictions (n, k) for the test rows, float64.
    """

    name: str
    dev_auc: float
    scores: torch.Tensor


@dataclass(frozen=True)
class Lead:
    """By how much one model's mean test AUC exceeds another's: the difference and its lower 97.5 % bound."""

    difference: float
    low: float

    @property
    def too_weak(self) -> bool:
        """Whether the other model is too weak, beyond noise."""
        return self.low > WORTH


def best_simple_model(
    release: Release, dev: torch.Tensor, dev_labels: torch.Tensor, test: torch.Tensor, *, decode: Decode
) -> SimpleModel:
    """The simple model with the best mean AUC on dev rows.

    Args:
        release: With labels (m, k) in [0, 1]; NaN is unknown.
        dev, test: Rows as `Key.query` gives them.
        dev_labels: Real labels (n, k).
        decode: `Key.decode`.

    Raises:
        NotApplicable: The release has no labels.
    """
    if release.labels is None:
        raise NotApplicable("no labels were released")
    found = []
    for side in SIDES if release.samples.ndim == 4 else SIDES[:1]:
        if release.samples.ndim == 4 and min(release.samples.shape[2:]) < side:
            continue
        rows, *others = (_pooled(samples, side) for samples in (release.samples, dev, test))
        mean = rows.mean(axis=0)
        axis = None if release.samples.ndim == 4 else 0
        scale = (rows - mean).std(axis=axis)
        scale = np.where(scale > 0, scale, 1)
        rows, *others = ((part - mean) / scale for part in (rows, *others))
        for penalty in PENALTIES:
            scores = _predicted(rows, release.labels.cpu().numpy(), others, 16 * penalty / rows.shape[1])
            dev_scores, test_scores = (decode(torch.from_numpy(part)) for part in scores)
            name = f"logistic regression on {side}x{side} means, C {16 * penalty / rows.shape[1]:.2g}"
            found.append(SimpleModel(name, mean_auc(dev_scores, dev_labels.cpu()), test_scores))
    return max(found, key=lambda model: model.dev_auc)


def lead(
    better: Sequence[torch.Tensor], scores: Sequence[torch.Tensor], labels: torch.Tensor, subjects: torch.Tensor | None
) -> Lead:
    """By how much `better` exceeds `scores`, the mean over keys, with a paired bootstrap over test people.

    Args:
        better, scores: Predictions (n, k), one a key.
        labels: (n, k): 1, 0, NaN.
        subjects: (n,) int64 or None.
    """
    weights = draw_weights(subjects, len(labels), DRAWS, seed=0)
    weights = torch.cat((torch.ones_like(weights[:1]), weights))
    columns = judged_findings(labels)
    means = [
        torch.stack([aucs(one[:, k], labels[:, k], weights) for one in made for k in columns]).nanmean(dim=0)
        for made in (better, scores)
    ]
    differences = means[0] - means[1]
    drawn = differences[1:]
    return Lead(float(differences[0]), float(drawn[~drawn.isnan()].quantile(SURE)))


def _pooled(samples: torch.Tensor, side: int) -> np.ndarray:
    rows = samples.double().cpu()
    return (torch.nn.functional.avg_pool2d(rows, side) if side > 1 else rows).flatten(1).numpy()


def _predicted(rows: np.ndarray, labels: np.ndarray, others: list[np.ndarray], c: float) -> list[np.ndarray]:
    from sklearn.linear_model import LogisticRegression

    columns: list[list[np.ndarray]] = [[] for _ in others]
    for column in labels.T:
        known = ~np.isnan(column)
        share, seen = column[known], rows[known]
        sides = [(seen[weight > 0], truth, weight[weight > 0]) for truth, weight in ((1, share), (0, 1 - share))]
        if min(len(part) for part, _, _ in sides) == 0:
            for made, part in zip(columns, others, strict=True):
                made.append(np.full(len(part), 0.5))
            continue
        truth = np.concatenate([np.full(len(part), value) for part, value, _ in sides])
        model = LogisticRegression(C=c, max_iter=STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # steps run out where a penalty is weak: another one is chosen
            model.fit(np.concatenate([part for part, _, _ in sides]), truth, np.concatenate([w for _, _, w in sides]))
        for made, part in zip(columns, others, strict=True):
            made.append(model.predict_proba(part)[:, 1])
    return [np.stack(made, axis=1) for made in columns]
