"""Contrastive: two towers learn, over keys of Eve's own, which released row belongs to which raw row.

Source: Yala et al., Syfer (2022), section 4.1: an instance encoder and a set encoder for the raw rows, another pair for
the released rows, cosine similarity, softmax over a batch; every step a fresh key; trained on the candidates themselves
and scored under keys never seen.

Differences from the paper:
- The similarity carries a learned scale (as in CLIP). exp(cos) alone cannot bring the loss of 128 pairs below 2.90.
- The softmax is taken over both raw and released rows (symmetric), over all links of Eve's own simulated releases:
  where several raw rows share a released row, each counts as a match.
- Rows are centred by the mean of their set and divided by one number, the set's standard deviation, so that encodings
  of any scale can be read. Instance embeddings are centred again before the set encoder.
- The SAU is told the size (log mean square) of each patch beside its content. Without it the same network needs far
  more steps to find that sizes survive a random linear map.
- When scoring, a set is the whole release, and not a batch of 128; above `SET_ROWS` rows, random parts of equal size.
- Training ends when the loss on held-out keys is near zero.
- Labels are not used. The loss is not divided by the number of keys: a step has one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from bench.nets.cosine import CosineScores
from bench.nets.patches import fitting_patch
from bench.nets.resnet import resnet18
from bench.nets.sau import InstanceSAU, SetSAU
from bench.nets.seeded import seeded
from bench.progress import report
from bench.seeds import derive, generator
from bench.types import Attack, Attacker, Dataset, NotApplicable, Parameter, Release, Scheme, View

SET_ROWS = 8192
LARGEST_SCALE = 100.0
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

    encoder: Literal["sau", "resnet18"] = "sau"
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

    def _embed(self, tower: Tower, rows: Tensor, side: str) -> Tensor:
        """(n, width). Parts are drawn at random, so that the order of the rows tells nothing."""
        order = torch.randperm(len(rows), generator=generator(derive(self.seed, "parts", side))).to(rows.device)
        embeddings = torch.empty(len(rows), tower.width, device=rows.device)
        with torch.no_grad():
            for part in order.tensor_split(math.ceil(len(rows) / SET_ROWS)):
                embeddings[part] = tower(rows[part])
        return embeddings


class Tower(nn.Module):
    """Rows of one set to unit embeddings: centre, scale, instance encoder, centre, set encoder."""

    def __init__(self, attack: Contrastive, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.instance = _instance_encoder(attack, shape)
        self.set = SetSAU(attack.width)
        self.width = attack.width

    def forward(self, rows: Tensor) -> Tensor:
        """(n, ...) rows of one set to (n, width) embeddings of length one."""
        centred = rows - rows.mean(dim=0, keepdim=True)
        instances = self.instance(centred / centred.std(correction=0).clamp_min(1e-12))
        return normalize(self.set(instances - instances.mean(dim=0, keepdim=True)), dim=1)


class Towers(nn.Module):
    """The raw tower, the released tower and the scale of their similarity."""

    def __init__(self, attack: Contrastive, raw: tuple[int, ...], released: tuple[int, ...]) -> None:
        super().__init__()
        self.raw, self.released = Tower(attack, raw), Tower(attack, released)
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def loss(self, raw: Tensor, release: Release) -> Tensor:
        """Mean negative log-likelihood of the links, over raw rows and over released rows."""
        links = _links(release)
        scale = self.log_scale.exp().clamp(max=LARGEST_SCALE)
        logits = scale * self.raw(raw) @ self.released(release.samples).T
        linked = torch.zeros_like(logits, dtype=torch.bool)
        linked[links[:, 0], links[:, 1]] = True
        return (_matching_loss(logits, linked) + _matching_loss(logits.T, linked.T)) / 2


def _matching_loss(logits: Tensor, linked: Tensor) -> Tensor:
    """Mean over rows with a link of -log(share of the softmax that falls on linked columns)."""
    matched = logits.masked_fill(~linked, -math.inf).logsumexp(dim=1)
    return (logits.logsumexp(dim=1) - matched)[linked.any(dim=1)].mean()


def _links(release: Release) -> Tensor:
    if release.links is None or not len(release.links):
        raise NotApplicable("the contrastive attack learns from links: no raw row stands in a row of this release")
    return release.links


def _instance_encoder(attack: Contrastive, shape: tuple[int, ...]) -> nn.Module:
    if attack.encoder == "sau":
        patch_size = fitting_patch(shape[1], shape[2]) if len(shape) == 3 else None
        return InstanceSAU(shape, width=attack.width, depth=attack.depth, patch_size=patch_size, sizes=True)
    if len(shape) != 3:
        raise NotApplicable(f"resnet18 reads images (c, h, w), got rows of shape {shape}; use encoder=sau")
    return resnet18((shape[0], shape[1], shape[2]), attack.width, width=max(1, attack.width // 4))


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
    shapes = (tuple(candidates.samples.shape[1:]), tuple(held_out[0][1].samples.shape[1:]))
    towers = Towers(attack, *shapes).to(device)
    optimiser = torch.optim.Adam(towers.parameters(), lr=attack.learning_rate)
    check = max(1, min(25, steps // 6))
    for step in range(steps):
        rise, fall = min(1.0, (step + 1) / WARM_UP), 0.5 * (1 + math.cos(math.pi * step / steps))
        optimiser.param_groups[0]["lr"] = attack.learning_rate * rise * fall
        optimiser.zero_grad(set_to_none=True)
        loss = towers.loss(*simulate("attack-key", step))
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
        mean = sum(float(towers.loss(raw, release)) for raw, release in held_out) / len(held_out)
    towers.train()
    return mean
