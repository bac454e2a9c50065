"""Contrastive: two towers learn, over keys of Eve's own, which released row belongs to which raw row.

Source: Yala et al., Syfer (2022), section 4.1: an instance encoder and a set encoder for the raw rows, another pair for
the released rows, cosine similarity, softmax over a batch; every step a fresh key; trained on the candidates themselves
and scored under keys never seen.

Differences from the paper:
- The towers and their loss: see `bench.nets.towers`.
- When scoring, a set is the whole release, and not a batch of 128; above `SET_ROWS` rows, random parts of equal size.
- Training ends when the loss on held-out keys is near zero.
- Labels are not used. The loss is not divided by the number of keys: a step has one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from bench.nets.cosine import CosineScores
from bench.nets.seeded import seeded
from bench.nets.towers import Encoder, Tower, Towers
from bench.progress import report
from bench.seeds import derive, generator
from bench.types import Attack, Attacker, Dataset, NotApplicable, Parameter, Release, Scheme, View

SET_ROWS = 8192
WARM_UP = 50


@dataclass(frozen=True)
class Contrastive(Attack):
    """Two towers trained by contrast on simulated releases.

    Args:
        encoder: Instance encoder: "sau", or "resnet18" for images.
        steps: Training steps, one fresh key each, where `epochs` is None.
        epochs: Passes over the candidates; None: `steps` counts.
        batch: Candidates a step.
        width: Width of the SAU and of the embeddings; a ResNet's first stage has a quarter of it (256: a ResNet-18).
        depth: Depth of the instance SAU.
        learning_rate: Of Adam, after a warm-up, falling to zero along a cosine.
        enough: Training ends when the mean loss on held-out keys is below this.
    """

    name: ClassVar[str] = "contrastive"
    source: ClassVar[str] = "Yala et al. 2022 (Syfer), section 4.1"
    knowledge: ClassVar[str] = "the raw rows, the release and the scheme; no key, no labels"
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {
        "smoke": {"steps": 60, "width": 64, "depth": 2},
        "first-look": {"steps": 300},
        "quick": {"steps": 1500},
        "standard": {"steps": 10_000, "width": 256},
        "paper": {"epochs": 500, "width": 256},
    }

    encoder: Encoder = "sau"
    steps: int = 1500
    epochs: int | None = None
    batch: int = 128
    width: int = 128
    depth: int = 3
    learning_rate: float = 2e-3
    enough: float = 0.01

    def __post_init__(self) -> None:
        if self.encoder not in ("sau", "resnet18"):
            raise ValueError(f"encoder must be sau or resnet18, got {self.encoder!r}")
        for what in ("steps", "epochs", "width", "depth"):
            number = getattr(self, what)
            if number is not None and number < 1:
                raise ValueError(f"{what} must be at least 1, got {number}")
        if self.batch < 2:
            raise ValueError(f"batch must be at least 2, got {self.batch}")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}")

    def fit(self, view: View, seed: int) -> ContrastiveAttacker:
        """Train the towers. Raises NotApplicable for releases without links, and for a resnet18 on rows of numbers."""
        device = view.candidates.samples.device
        with seeded(derive(seed, "towers"), device):
            return _train(self, view.scheme, view.candidates, seed)


@dataclass(frozen=True, eq=False)
class ContrastiveAttacker(Attacker):
    """Trained towers and the raw rows."""

    towers: Towers
    candidates: Tensor
    seed: int

    def score(self, sealed: Release) -> CosineScores:
        """Cosines between the embeddings of the candidates and of the released rows."""
        return CosineScores(
            self._embed(self.towers.raw, self.candidates, "raw"),
            self._embed(self.towers.released, sealed.samples, "released"),
        )

    def _embed(self, tower: nn.Module, rows: Tensor, side: str) -> Tensor:
        """(n, width). Parts are drawn at random, so that the order of the rows tells nothing."""
        order = torch.randperm(len(rows), generator=generator(derive(self.seed, "parts", side))).to(rows.device)
        with torch.no_grad():
            parts = [tower(rows[part]) for part in order.tensor_split(math.ceil(len(rows) / SET_ROWS))]
        return torch.cat(parts)[order.argsort()]


def _train(attack: Contrastive, scheme: Scheme, candidates: Dataset, seed: int) -> ContrastiveAttacker:
    n, device = len(candidates), candidates.samples.device
    batch = min(attack.batch, n)
    if batch < 2:
        raise NotApplicable(f"the contrastive attack compares rows: needs at least 2 candidates, got {n}")
    steps = attack.steps if attack.epochs is None else attack.epochs * math.ceil(n / batch)
    order = generator(derive(seed, "batches"))

    def simulate(name: str, step: int) -> tuple[Tensor, Release]:
        rows = candidates.take(torch.randperm(n, generator=order)[:batch].to(device))
        return rows.samples, scheme.sample_key(derive(seed, name, step)).release(rows)

    held_out = [simulate("held-out-key", number) for number in range(4)]
    towers = Towers(
        Tower(attack.encoder, tuple(candidates.samples.shape[1:]), width=attack.width, depth=attack.depth),
        Tower(attack.encoder, tuple(held_out[0][1].samples.shape[1:]), width=attack.width, depth=attack.depth),
    ).to(device)
    optimiser = torch.optim.Adam(towers.parameters(), lr=attack.learning_rate)
    check = max(1, min(25, steps // 6))
    for step in range(steps):
        rise, fall = min(1.0, (step + 1) / WARM_UP), 0.5 * (1 + math.cos(math.pi * step / steps))
        optimiser.param_groups[0]["lr"] = attack.learning_rate * rise * fall
        optimiser.zero_grad(set_to_none=True)
        raw, release = simulate("attack-key", step)
        loss = towers.loss(raw, release.samples, _links(release))
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(towers.parameters(), 1.0)
        optimiser.step()
        if (step + 1) % check == 0 or step + 1 == steps:
            now = _held_out_loss(towers, held_out)
            report(f"contrastive, loss on held-out keys {now:.3f}, step", step + 1, steps)
            if now < attack.enough:
                break
    return ContrastiveAttacker(towers.eval(), candidates.samples, seed)


def _held_out_loss(towers: Towers, held_out: list[tuple[Tensor, Release]]) -> float:
    towers.eval()
    with torch.no_grad():
        mean = sum(float(towers.loss(raw, release.samples, _links(release))) for raw, release in held_out) / len(
            held_out
        )
    towers.train()
    return mean


def _links(release: Release) -> Tensor:
    if release.links is None or not len(release.links):
        raise NotApplicable("the contrastive attack learns from links: no raw row stands in a row of this release")
    return release.links
