"""Two towers that learn which released row belongs to which raw row, by contrast over the links of simulated releases.

Source: Yala et al., Syfer (2022), section 4.1: an instance encoder and a set encoder for the raw rows, another pair for
the released rows, cosine similarity, softmax over a batch.

Differences from the paper:
- The similarity carries a learned scale (as in CLIP). exp(cos) alone cannot bring the loss of 128 pairs below 2.90.
- The softmax is taken over both raw and released rows (symmetric), over all links: where several raw rows share a
  released row, each counts as a match.
- Rows are centred by the mean of their set and divided by one number, the set's standard deviation, so that encodings
  of any scale can be read. Instance embeddings are centred again before the set encoder.
- The SAU and the ViT are told the size (log mean square) of each patch beside its content. Without it the same network
  needs far more steps to find that sizes survive a random linear map.
- With `relations`, an embedding of how each row stands to the others of its set (sorted inner products) is added to its
  own. The set encoder would have to learn them from attention.
- Where labels are used, the embedding of a row's label is added to the embedding of the row.

A tower is any module that turns the rows of one set into unit embeddings, and `Towers` pairs two of them: an attack
with encoders of its own brings its own. Gradients reach both inputs, so that a method can be trained against the loss
with the towers frozen (`towers.requires_grad_(False)`).
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from bench.memory.kept import by_blocks
from bench.memory.rows import Rows
from bench.nets.patches import fitting_patch
from bench.nets.relations import Relations
from bench.nets.resnet import LEAST_WIDTH, resnet18
from bench.nets.sau import InstanceSAU, SetSAU
from bench.nets.vit import vit
from bench.types import NotApplicable

Encoder = Literal["sau", "vit", "resnet18"]

LARGEST_SCALE = 100.0
FIRST_SCALE = 1 / 0.07
SMALLEST_DEVIATION = 1e-12


class Tower(nn.Module):
    """Rows of one set to unit embeddings: centre, scale, instance encoder, centre, set encoder.

    Args:
        encoder: Instance encoder: "sau"; for images also "vit" or "resnet18".
        shape: Of one row: (c, h, w) or (d,).
        width: Of the SAU, the ViT and the embeddings; a ResNet's first stage has a quarter of it (256: a ResNet-18).
        depth: Of the instance SAU or ViT.
        labels: Columns of the labels that come with the rows, whose embedding is added to that of the row; 0: none.
        relations: Add an embedding of how the row stands to the others of its set: see `bench.nets.relations`.

    Raises:
        NotApplicable: An encoder of images for rows of numbers.
    """

    def __init__(
        self,
        encoder: Encoder,
        shape: tuple[int, ...],
        *,
        width: int,
        depth: int,
        labels: int = 0,
        relations: bool = False,
    ) -> None:
        super().__init__()
        self.instance = instance_encoder(encoder, shape, width=width, depth=depth)
        self.set = SetSAU(width)
        self.label = nn.Linear(labels, width) if labels else None
        if self.label is not None:
            nn.init.normal_(self.label.weight)  # as large as what the images say, or it is found late
        self.relations = Relations(shape, width=width, patch_size=row_patch(shape)) if relations else None

    def forward(self, rows: Tensor, labels: Tensor | None = None) -> Tensor:
        """(n, ...) rows of one set, float32, with their labels (n, k), to (n, width) embeddings of length one."""
        centred = rows - rows.mean(dim=0, keepdim=True)
        scaled = centred / centred.std(correction=0).clamp_min(SMALLEST_DEVIATION)
        # Layers hold ten times a set and more: of rows on disk, each is encoded as it is read.
        instances = by_blocks(scaled, self.instance) if isinstance(scaled, Rows) else self.instance(scaled)
        if self.relations is not None:
            instances = instances + self.relations(scaled)
        if self.label is not None:
            if labels is None:
                raise ValueError("this tower reads labels: expected labels (n, k) beside the rows, got None")
            instances = instances + self.label(labels)
        return normalize(self.set(instances - instances.mean(dim=0, keepdim=True)), dim=1)


class Towers(nn.Module):
    """A tower for raw rows, a tower for released rows, and the learned scale of their similarity.

    Args:
        raw: Raw rows (n, ...) to unit embeddings (n, width).
        released: Released rows (m, ...) to unit embeddings (m, width).
    """

    def __init__(self, raw: nn.Module, released: nn.Module) -> None:
        super().__init__()
        self.raw, self.released = raw, released
        self.log_scale = nn.Parameter(torch.tensor(math.log(FIRST_SCALE)))

    def forward(
        self, raw: Tensor, released: Tensor, *, raw_labels: Tensor | None = None, released_labels: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Embeddings (n, width) and (m, width) of both sides; labels only for towers that read them."""
        raw_inputs = (raw,) if raw_labels is None else (raw, raw_labels)
        released_inputs = (released,) if released_labels is None else (released, released_labels)
        return self.raw(*raw_inputs), self.released(*released_inputs)

    def match(self, raw: Tensor, released: Tensor, links: Tensor) -> Tensor:
        """Mean negative log-likelihood of the links, over raw rows and over released rows; log(n) at chance.

        Args:
            raw: (n, width) embeddings of one set.
            released: (m, width) embeddings of one release of it.
            links: (p, 2) int64, raw row and released row; at least one link.
        """
        scale = self.log_scale.exp().clamp(max=LARGEST_SCALE)
        logits = scale * raw @ released.T
        place = links[:, 0] * logits.shape[1] + links[:, 1]
        linked = torch.zeros_like(logits, dtype=torch.bool).flatten().scatter_(0, place, True).view(logits.shape)
        return (matching_loss(logits, linked) + matching_loss(logits.T, linked.T)) / 2

    def loss(self, raw: Tensor, released: Tensor, links: Tensor) -> Tensor:
        """`match` of the embeddings of raw rows (n, ...) and released rows (m, ...)."""
        return self.match(self.raw(raw), self.released(released), links)


def matching_loss(logits: Tensor, linked: Tensor) -> Tensor:
    """Mean over rows with a link of -log(share of the softmax that falls on linked columns).

    Args:
        logits: (n, m) float32.
        linked: (n, m) bool, at least one True.
    """
    judged = linked.any(dim=1, keepdim=True)
    matched = logits.masked_fill(~linked & judged, -math.inf).logsumexp(dim=1)  # a row without a link loses nothing
    return (logits.logsumexp(dim=1) - matched).sum() / judged.sum()


def instance_encoder(encoder: Encoder, shape: tuple[int, ...], *, width: int, depth: int) -> nn.Module:
    """Rows (n, *shape) to embeddings (n, width), each row by itself; arguments as of `Tower`."""
    if encoder == "sau":
        return InstanceSAU(shape, width=width, depth=depth, patch_size=row_patch(shape), sizes=True)
    if len(shape) != 3:
        raise NotApplicable(f"{encoder} reads images (c, h, w), got rows of shape {shape}; use encoder=sau")
    image = (shape[0], shape[1], shape[2])
    if encoder == "vit":
        return vit(image, width=width, depth=depth, patch_size=row_patch(shape), sizes=True)
    return resnet18(image, width, width=max(LEAST_WIDTH, width // 4))


def row_patch(shape: tuple[int, ...]) -> int | None:
    """Side of the patches in which rows of `shape` are read; None: as a whole."""
    return fitting_patch(shape[1], shape[2]) if len(shape) == 3 else None
