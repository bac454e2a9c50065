"""Is Bob strong enough on a method's releases? Where a simple model beats him, its utility is understated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast

import torch

from bench.bob.model_selection import mean_auc, train_bob
from bench.conformance import outcome
from bench.conformance.outcome import Skip
from bench.conformance.simple_models import Lead, best_simple_model, lead
from bench.contract.preset import PRESETS
from bench.evaluators.predictions import plan_of
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Dataset, Method, Scheme

PRIVATE, DEV, TEST = 120, 80, 240
STRENGTH = 0.06


@dataclass(frozen=True)
class Strength:
    """Bob beside the best simple model on the same rows: mean test AUCs, and the model's lead."""

    bob: float
    simple: float
    name: str
    lead: Lead


def bobs_strength(method: Method, scheme: Scheme, kind: Literal["images", "table"], device: torch.device) -> Strength:
    """Let both learn from a release of rows with two findings that are easy to see, and find them in new rows.

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
    """Noisy rows with two findings: a brighter left half and a brighter middle; or two shifted columns of a table."""
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
