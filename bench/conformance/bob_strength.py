"""Bob's strength on a method's releases, against simple models.

If a simple model beats him, the method's utility is understated.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
import torch

from bench.bob.model_selection import Decode, judged_findings, mean_auc, train_bob
from bench.conformance import outcome
from bench.conformance.outcome import Skip
from bench.contract.preset import PRESETS
from bench.evaluators.predictions import plan_of
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.statistics.bootstrap import draw_weights
from bench.statistics.classification_scores import aucs
from bench.types import Dataset, Method, NotApplicable, Release, Scheme

PRIVATE, DEV, TEST = 120, 80, 240
STRENGTH = 0.06


@dataclass(frozen=True)
class Strength:
    """Bob beside the best simple model on the same rows.

    Mean test AUCs, and the model's lead.
    """

    bob: float
    simple: float
    name: str
    lead: Lead


def bobs_strength(method: Method, scheme: Scheme, kind: Literal["images", "table"], device: torch.device) -> Strength:
    """Train both on a release of rows with two clear findings.

    Raises:
        Skip: Released rows depend on labels and have another shape than raw ones.
        NotApplicable: Nothing is released that can be learned from.
    """
    parts = [shown(kind, rows, seed).to(device) for seed, rows in enumerate((PRIVATE, DEV, TEST))]
    private, dev, test = parts
    key = scheme.sample_key(Secret.of_seed(0, "strength of Bob"))
    release = replace(key.release(private), links=None)
    if method.uses_labels and release.samples.shape[1:] != private.samples.shape[1:]:
        raise Skip("released rows depend on labels and are no raw rows")
    rows = [part.samples if method.uses_labels else key.query(part.samples) for part in (dev, test)]
    labels = [cast(torch.Tensor, part.labels) for part in (dev, test)]
    plan = plan_of(PRESETS["smoke"])
    bob = train_bob(release, rows[0], labels[0], exclusive=False, plan=plan, seed=0, decode=key.decode)
    simple = best_simple_model(release, rows[0], labels[0], rows[1], decode=key.decode)
    own, truth = key.decode(bob.predict(rows[1])).cpu(), labels[1].cpu()
    ahead = lead([simple.scores], [own], truth, None)
    return Strength(mean_auc(own, truth), mean_auc(simple.scores, truth), simple.name, ahead)


def shown(kind: Literal["images", "table"], rows: int, seed: int) -> Dataset:
    """Noisy rows with two findings.

    Images: a brighter left half and a brighter middle. Tables: two shifted columns.
    """
    random = generator(derive(seed, "strength of Bob", kind))
    labels = torch.stack((torch.arange(rows) % 2, torch.arange(rows) // 2 % 2), dim=1).float()
    if kind == "images":
        side = outcome.SIDE
        middle = slice(side * 3 // 8, side * 5 // 8)
        samples = 0.5 + 0.1 * torch.randn(rows, 1, side, side, generator=random)
        faint = STRENGTH * torch.rand(rows, generator=random)[:, None, None]
        samples[:, 0, :, : side // 2] += faint * labels[:, :1, None]
        samples[:, 0, middle, middle] += 2 * faint * labels[:, 1:, None]
        samples = samples.clamp(0, 1)
    else:
        samples = torch.randn(rows, 8, generator=random)
        samples[:, :2] += labels
    return Dataset(f"shown {kind}", samples, labels, torch.arange(rows), ("left", "middle"), False, True)


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
    """The lead of one model's mean test AUC over another's.

    The difference and its lower 97.5 % bound.
    """

    difference: float
    low: float

    @property
    def too_weak(self) -> bool:
        """If the other model is too weak, beyond noise."""
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
    models = []
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
            models.append(SimpleModel(name, mean_auc(dev_scores, dev_labels.cpu()), test_scores))
    return max(models, key=lambda model: model.dev_auc)


def lead(
    better: Sequence[torch.Tensor], scores: Sequence[torch.Tensor], labels: torch.Tensor, subjects: torch.Tensor | None
) -> Lead:
    """The lead of `better` over `scores`, the mean over keys.

    With a paired bootstrap over test people.

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
    resamples = differences[1:]
    return Lead(float(differences[0]), float(resamples[~resamples.isnan()].quantile(SURE)))


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
