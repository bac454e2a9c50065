"""Two towers that learn which released row belongs to which raw row, by contrast over the links of simulated releases.

Source: Yala et al., Syfer (2022), section 4.1: an instance encoder and a set encoder for the raw rows, another pair for
the released rows, cosine similarity, softmax over a batch.

Differences from the paper:
- The similarity carries a learned scale (as in CLIP). exp(cos) alone cannot bring the loss of 128 pairs below 2.90.
- The softmax is taken over both raw and released rows (symmetric), over all links: where several raw rows share a
  released row, each counts as a match.
- Rows are centred by the mean of their set and divided by one number, the set's standard deviation, so that encodings
  of any scale can be read. Instance embeddings are centred again before the set encoder.
- The SAU is told the size (log mean square) of each patch beside its content. Without it the same network needs far
  more steps to find that sizes survive a random linear map.

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

from bench.nets.patches import fitting_patch
from bench.nets.resnet import resnet18
from bench.nets.sau import InstanceSAU, SetSAU
from bench.types import NotApplicable

Encoder = Literal["sau", "resnet18"]

LARGEST_SCALE = 100.0
FIRST_SCALE = 1 / 0.07
SMALLEST_DEVIATION = 1e-12


class Tower(nn.Module):
    """Rows of one set to unit embeddings: centre, scale, instance encoder, centre, set encoder.

    Args:
        encoder: Instance encoder: "sau", or "resnet18" for images.
        shape: Of one row: (c, h, w) or (d,).
        width: Of the SAU and of the embeddings; a ResNet's first stage has a quarter of it (256: a ResNet-18).
        depth: Of the instance SAU.

    Raises:
        NotApplicable: An encoder of images for rows of numbers.
    """

    def __init__(self, encoder: Encoder, shape: tuple[int, ...], *, width: int, depth: int) -> None:
        super().__init__()
        self.instance = instance_encoder(encoder, shape, width=width, depth=depth)
        self.set = SetSAU(width)

    def forward(self, rows: Tensor) -> Tensor:
        """(n, ...) rows of one set, float32, to (n, width) embeddings of length one."""
        centred = rows - rows.mean(dim=0, keepdim=True)
        instances = self.instance(centred / centred.std(correction=0).clamp_min(SMALLEST_DEVIATION))
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

    def loss(self, raw: Tensor, released: Tensor, links: Tensor) -> Tensor:
        """Mean negative log-likelihood of the links, over raw rows and over released rows; log(n) at chance.

        Args:
            raw: (n, ...) float32, one set.
            released: (m, ...) float32, one release of it.
            links: (p, 2) int64, raw row and released row; at least one.
        """
        scale = self.log_scale.exp().clamp(max=LARGEST_SCALE)
        logits = scale * self.raw(raw) @ self.released(released).T
        linked = torch.zeros_like(logits, dtype=torch.bool)
        linked[links[:, 0], links[:, 1]] = True
        return (matching_loss(logits, linked) + matching_loss(logits.T, linked.T)) / 2


def matching_loss(logits: Tensor, linked: Tensor) -> Tensor:
    """Mean over rows with a link of -log(share of the softmax that falls on linked columns).

    Args:
        logits: (n, m) float32.
        linked: (n, m) bool, at least one True.
    """
    matched = logits.masked_fill(~linked, -math.inf).logsumexp(dim=1)
    return (logits.logsumexp(dim=1) - matched)[linked.any(dim=1)].mean()


def instance_encoder(encoder: Encoder, shape: tuple[int, ...], *, width: int, depth: int) -> nn.Module:
    """Rows (n, *shape) to embeddings (n, width), each row by itself; arguments as of `Tower`."""
    if encoder == "sau":
        patch_size = fitting_patch(shape[1], shape[2]) if len(shape) == 3 else None
        return InstanceSAU(shape, width=width, depth=depth, patch_size=patch_size, sizes=True)
    if len(shape) != 3:
        raise NotApplicable(f"{encoder} reads images (c, h, w), got rows of shape {shape}; use encoder=sau")
    return resnet18((shape[0], shape[1], shape[2]), width, width=max(1, width // 4))
