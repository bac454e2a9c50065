"""Rows that lie on disk and do not fit in memory, and what attacks find with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from bench.memory.memory_budget import Budget
from bench.memory.rows import Rows
from bench.plugins import registry
from bench.plugins.spec import parse
from bench.randomness import Secret
from bench.types import Attack, Dataset, Method, View

N, SIDE = 2600, 8
FITTING = 1200  # rows in float64 that a job may bring together: fewer than all of them in float32
BYTES = np.random.default_rng(0).integers(0, 256, (N, 1, SIDE, SIDE), dtype=np.uint8)


def images(count: int, *, on_disk: bool, fitting: int = FITTING) -> Dataset:
    budget = Budget(4 * fitting * SIDE * SIDE * 8)
    plain = torch.from_numpy(BYTES[:count].astype(np.float32) / 255)
    samples = Rows.of(BYTES[:count], budget, divisor=255.0) if on_disk else plain
    return Dataset("made", samples, torch.arange(count).remainder(2).float()[:, None], None, ("a",), False, True)


def found(
    attack: str, method: str, *, on_disk: bool, count: int = N, fitting: int = FITTING, device: str = "cpu"
) -> Tensor:
    """Scores of all pairs, or of membership, against a release under a key that the attack has not seen."""
    built, against = (
        registry.build("methods", parse(method), "smoke"),
        registry.build("attacks", parse(attack), "smoke"),
    )
    assert isinstance(built, Method)
    assert isinstance(against, Attack)
    place = torch.device(device)
    public, candidates = images(64, on_disk=False).to(place), images(count, on_disk=on_disk, fitting=fitting).to(place)
    scheme = built.fit(public, 0)
    release = replace(scheme.sample_key(Secret.of_seed(5)).release(candidates), links=None, primary=None)
    assert isinstance(release.samples, Rows) == on_disk
    attacker = against.fit(View(public, scheme, candidates, images(600, on_disk=False).to(place)), 0)
    if against.scores == "membership":
        return attacker.membership(release)
    scores = attacker.score(release)
    return torch.cat([scores.block(slice(at, at + 650), slice(0, 100)) for at in range(0, count, 650)])
