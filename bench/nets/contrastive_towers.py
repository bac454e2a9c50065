"""Contrastive towers that match raw and released rows; relations between rows.

Relations: signatures of the Gram matrix, readable without a key.

A wide random network nearly keeps, or changes in a known way, the inner products of what it encodes: what is close
stays close. So the sorted inner products of an image's patch with the same patch of all other images say which image it
is, before and after the encoding, whatever the key. A network would have to discover this; here it is an input.

Source: our own, after the kernels of wide random networks, which are nearly deterministic (Lee et al., Deep neural
networks as Gaussian processes, 2018).

Towers: trained to match rows by contrast over the links of simulated releases.

Source: Yala et al., Syfer (2022), section 4.1: an instance encoder and a set encoder for the raw rows, another pair for
the released rows, cosine similarity, softmax over a batch.

Differences from the paper:
- The similarity carries a learned scale (as in CLIP). exp(cos) alone cannot bring the loss of 128 pairs below 2.90.
- The softmax is taken over both raw and released rows (symmetric), over all links: if several raw rows share a
  released row, each counts as a match.
- Rows are centred by the mean of their set and divided by one number, the set's standard deviation, so that encodings
  of any scale can be read. Instance embeddings are centred again before the set encoder.
- The SAU and the ViT also read the size (log mean square) of each patch. Without it the same network
  needs far more steps to find that sizes survive a random linear map.
- With `relations`, an embedding of how each row stands to the others of its set (sorted inner products) is added to its
  own. The set encoder would have to learn them from attention.
- If labels are used, the embedding of a row's label is added to the embedding of the row.

A tower is any module that turns the rows of one set into unit embeddings, and `Towers` pairs two of them: an attack
with encoders of its own brings its own. Gradients reach both inputs, so that a method can be trained against the loss
with the towers frozen (`towers.requires_grad_(False)`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from bench.memory.rows import Rows, by_blocks
from bench.nets.convolutional_networks import LEAST_WIDTH, resnet18
from bench.nets.network_choices import Encoder
from bench.nets.patches import cut, fitting_patch, patch_grid
from bench.nets.transformers import InstanceSAU, SetSAU, vit
from bench.types import NotApplicable


def ordered(table: Tensor) -> Tensor:
    """Each row in rising order, by numpy on CPUs: ten times faster."""
    if table.device.type == "cpu" and not table.requires_grad:
        return torch.from_numpy(np.sort(table.numpy(), axis=-1))
    return table.sort(dim=-1).values


QUANTILES = 16
BLOCK = 2**25
SMALLEST_NORM = 1e-12
SMALLEST_DEVIATION_OF_SIGNATURE = 1e-5


class Relations(nn.Module):
    """Rows (images or vectors) of one set to embeddings of their signatures."""

    def __init__(self, shape: tuple[int, ...], *, width: int, patch_size: int | None) -> None:
        super().__init__()
        self.patch_size = patch_size if len(shape) == 3 else None
        locations = 1 if self.patch_size is None else math.prod(patch_grid(shape[1], shape[2], self.patch_size)) + 1
        self.body = nn.Sequential(
            nn.Linear(locations * (2 * QUANTILES + 1), 2 * width), nn.SELU(), nn.Linear(2 * width, width)
        )

    def forward(self, rows: Tensor) -> Tensor:
        """(n, ...) rows of one set, float32, to (n, width)."""
        with torch.autocast(rows.device.type, enabled=False):
            features = signatures(rows, self.patch_size).flatten(1)
        deviation, mean = torch.std_mean(features, dim=0, correction=0)
        out: Tensor = self.body((features - mean) / deviation.clamp_min(SMALLEST_DEVIATION_OF_SIGNATURE))
        return out


def signatures(rows: Tensor, patch_size: int | None) -> Tensor:
    """Centred signatures (n, locations, 33) per patch, and per row if several.

    16 quantiles of the inner products with the other rows, 16 of the cosines, and the logarithm of the square norm.
    Memory grows with the rows, not with their square. A set of one row has no others: its quantiles are 0.
    """
    patches = (rows.flatten(1).unsqueeze(1) if patch_size is None else cut(rows, patch_size)).transpose(0, 1)
    patches = patches - patches.mean(dim=1, keepdim=True)
    norms = _with_whole(patches.square().sum(dim=2)).clamp_min(SMALLEST_NORM)
    inverse, n = norms.rsqrt(), patches.shape[1]
    blocks = []
    for block in torch.split(torch.arange(n, device=rows.device), max(1, BLOCK // (n * len(norms)))):
        products = _with_whole(patches[:, block] @ patches.transpose(1, 2))
        cosines = products * inverse[:, block, None] * inverse[:, None, :]
        blocks.append(torch.cat((_quantiles(products, block), _quantiles(cosines, block)), dim=2))
    return torch.cat((torch.cat(blocks, dim=1), norms.log().unsqueeze(2)), dim=2).transpose(0, 1)


def _with_whole(parts: Tensor) -> Tensor:
    """The patches' inner products, and their sum: those of whole rows."""
    return parts if len(parts) == 1 else torch.cat((parts, parts.sum(dim=0, keepdim=True)))


def _quantiles(table: Tensor, block: Tensor) -> Tensor:
    """(locations, b, QUANTILES) over columns, without each row's own."""
    others = table.shape[2] - 1
    if not others:
        return table.new_zeros(*table.shape[:2], QUANTILES)
    own = block.view(1, -1, 1).expand(len(table), -1, 1)
    rising = ordered(table.scatter(2, own, -math.inf))[:, :, 1:]
    places = ((torch.arange(QUANTILES, device=table.device) + 0.5) / QUANTILES * others).long()
    return rising[:, :, places]


LARGEST_SCALE = 100.0
FIRST_SCALE = 1 / 0.07
SMALLEST_DEVIATION = 1e-12


class Tower(nn.Module):
    """A network from one set's rows to unit embeddings.

    Centre, scale, instance encoder, centre, set encoder.

    Args:
        encoder: Instance encoder: "sau"; for images also "vit" or "resnet18".
        shape: Of one row: (c, h, w) or (d,).
        width: Of the SAU, the ViT and the embeddings; a ResNet's first stage has a quarter of it (256: a ResNet-18).
        depth: Of the instance SAU or ViT.
        labels: Columns of the labels that come with the rows, whose embedding is added to that of the row; 0: none.
        relations: Add an embedding of how the row stands to the others of its set: see `bench.nets.contrastive_towers`.

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
        """Unit embeddings (n, width) of one set's rows (n, ...)."""
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


class PieceTower(nn.Module):
    """A network from rows to unit embeddings, by pieces and their mean.

    `describe` gives the features (n, p, `features`) of pieces; `places` is p if a piece's place says which part of
    the row it is, None for sets of pieces.
    """

    def __init__(self, describe: Callable[[Tensor], Tensor], features: int, width: int, *, places: int | None) -> None:
        super().__init__()
        self.describe, self.in_place = describe, places is not None
        self.place = nn.Parameter(torch.randn(places, 2 * width)) if places is not None and places > 1 else None
        self.first = nn.Linear(features, 2 * width)
        self.piece = nn.Sequential(nn.GELU(), nn.Linear(2 * width, 2 * width), nn.GELU())
        self.row = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, rows: Tensor) -> Tensor:
        """Unit embeddings (n, width) of one set's rows (n, ...)."""
        features = self.describe(rows)
        axes = (0,) if self.in_place else (0, 1)
        centred = features - features.mean(dim=axes, keepdim=True)
        scaled = centred / centred.std(dim=axes, keepdim=True, correction=0).clamp_min(1e-3)
        # Layers hold ten times a set and more: of rows on disk, each is encoded as it is read.
        pieces = by_blocks(scaled, self._pieces) if isinstance(scaled, Rows) else self._pieces(scaled)
        embedded: Tensor = self.row(pieces - pieces.mean(dim=0, keepdim=True))
        return normalize(embedded - embedded.mean(dim=0, keepdim=True), dim=1)

    def _pieces(self, features: Tensor) -> Tensor:
        hidden = self.first(features)
        summary: Tensor = self.piece(hidden if self.place is None else hidden + self.place).mean(dim=1)
        return summary


class Towers(nn.Module):
    """Towers for raw and released rows, with a learned similarity scale.

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
        """Embeddings of both sides; labels only for towers that read them."""
        raw_inputs = (raw,) if raw_labels is None else (raw, raw_labels)
        released_inputs = (released,) if released_labels is None else (released, released_labels)
        return self.raw(*raw_inputs), self.released(*released_inputs)

    def match(self, raw: Tensor, released: Tensor, links: Tensor) -> Tensor:
        """Mean negative log-likelihood of the links (p, 2); log(n) at chance."""
        scale = self.log_scale.exp().clamp(max=LARGEST_SCALE)
        logits = scale * raw @ released.T
        return symmetric_loss(logits, linked_pairs(links, (len(raw), len(released))))

    def loss(self, raw: Tensor, released: Tensor, links: Tensor) -> Tensor:
        """`match` of the embeddings of raw and released rows."""
        return self.match(self.raw(raw), self.released(released), links)


def linked_pairs(links: Tensor, shape: tuple[int, int]) -> Tensor:
    """(n, m) bool of links (p, 2), on their device."""
    linked = torch.zeros(shape, dtype=torch.bool, device=links.device)
    return linked.flatten().scatter_(0, links[:, 0] * shape[1] + links[:, 1], True).view(shape)


def symmetric_loss(logits: Tensor, linked: Tensor) -> Tensor:
    """Mean of `matching_loss` by rows and by columns."""
    return (matching_loss(logits, linked) + matching_loss(logits.T, linked.T)) / 2


def matching_loss(logits: Tensor, linked: Tensor) -> Tensor:
    """Mean over linked rows of -log(softmax share of linked columns).

    Args:
        logits: (n, m) float32.
        linked: (n, m) bool, at least one True.
    """
    judged = linked.any(dim=1, keepdim=True)
    matched = logits.masked_fill(~linked & judged, -math.inf).logsumexp(dim=1)  # a row without a link loses nothing
    return (logits.logsumexp(dim=1) - matched).sum() / judged.sum()


def instance_encoder(encoder: Encoder, shape: tuple[int, ...], *, width: int, depth: int) -> nn.Module:
    """Encoder of rows (n, *shape) to (n, width); arguments as of `Tower`."""
    if encoder == "sau":
        return InstanceSAU(shape, width=width, depth=depth, patch_size=row_patch(shape), sizes=True)
    if len(shape) != 3:
        raise NotApplicable(f"{encoder} reads images (c, h, w), got rows of shape {shape}; use encoder=sau")
    image = (shape[0], shape[1], shape[2])
    if encoder == "vit":
        return vit(image, width=width, depth=depth, patch_size=row_patch(shape), sizes=True)
    return resnet18(image, width, width=max(LEAST_WIDTH, width // 4))


def row_patch(shape: tuple[int, ...]) -> int | None:
    """Side of the patches of rows of `shape`; None: one patch."""
    return fitting_patch(shape[1], shape[2]) if len(shape) == 3 else None
