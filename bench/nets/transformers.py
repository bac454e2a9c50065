"""Transformers: the Simple Attention Unit (SAU) of Syfer, and ViT.

SAU: attention with one learned gate per layer. Source: Yala et al., Syfer (2022), appendix C. The copy of the paper at
hand lacks its equations; this is the form that agrees with the stated parameter count of four width x width maps a
layer (query, key, value and W):

    h = LayerNorm(x) + position,   o = s MHSA(h) + (1 - s) h,   out = x + SELU(W o + b),   s = sigmoid(gate)

With the gate closed (s = 0) a layer is an ordinary feed-forward layer, with the gate open (s = 1) plain attention whose
output map is W. The gate starts at -2 (s = .12). Positions start at N(0, 0.5^2), half the size of normalised tokens: at
the usual 0.02 the layers take hundreds of steps to tell one patch from another. The residual `x +` is our choice (a
parameter): deeper stacks train sooner with it.

ViT: timm's, sized for medical images from 8 pixels up, with random weights.

Source: Dosovitskiy et al., An image is worth 16x16 words (2021); timm's `VisionTransformer` with the mean over the
tokens instead of a class token.

Differences from the paper: patches enter through `bench.nets.transformers.Tokens`, which can tell the network the size
of each patch, and positions start at N(0, 0.5^2), as in our SAU and for its reason: at the usual 0.02 the layers take
hundreds of steps to tell one patch from another.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, scaled_dot_product_attention, selu

from bench.nets.patches import cut, patch_grid
from bench.validation import at_least

GATE_START = -2.0
POSITION_START = 0.5
SMALLEST_SIZE = 1e-8


class SAULayer(nn.Module):
    """One gated layer on tokens (b, t, width).

    Args:
        width: Numbers a token; a multiple of `heads`.
        heads: Attention heads.
        locations: Learned position vectors, one a token; 0 for sets, whose tokens have no order.
        residual: Add the input to the output.
    """

    def __init__(self, width: int, heads: int, locations: int, residual: bool) -> None:
        super().__init__()
        if width < 1 or heads < 1 or width % heads:
            raise ValueError(f"width must be a multiple of heads, got width {width} and heads {heads}")
        self.heads, self.residual = heads, residual
        self.scale = nn.Parameter(torch.ones(width))
        self.position = nn.Parameter(torch.randn(max(locations, 1), width) * (POSITION_START if locations else 0.0))
        self.gate = nn.Parameter(torch.tensor(GATE_START))
        self.attend = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (b, t, width) to tokens of the same shape."""
        b, t, width = tokens.shape
        h = layer_norm(tokens, (width,), self.scale) + self.position
        query, key, value = self.attend(h).view(b, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(b, t, width)
        out = selu(self.out(h + torch.sigmoid(self.gate) * (attended - h)))
        return tokens + out if self.residual else out


class SAU(nn.Module):
    """`depth` layers on tokens (b, t, width); `locations` as in `SAULayer`."""

    def __init__(self, width: int, depth: int, *, locations: int = 0, heads: int = 4, residual: bool = True) -> None:
        super().__init__()
        at_least(1, depth=depth)
        self.layers = nn.Sequential(*(SAULayer(width, heads, locations, residual) for _ in range(depth)))

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (b, t, width) to tokens of the same shape."""
        out: Tensor = self.layers(tokens)
        return out


class Tokens(nn.Module):
    """Images (n, c, h, w) or vectors (n, d) to tokens.

    (n, t, width), one a patch: a linear map of its numbers.

    Args:
        shape: Of one row: (c, h, w), cut into patches, or (d,), a single token.
        width: Numbers a token.
        patch_size: Side of a square patch in pixels; None makes one token of a whole row.
        sizes: Add to each token a learned vector of its location times the logarithm of the patch's mean square. The
            size of a patch survives many random maps, and a LayerNorm on the tokens would hide it.
    """

    def __init__(self, shape: tuple[int, ...], *, width: int, patch_size: int | None, sizes: bool) -> None:
        super().__init__()
        self.patch_size = patch_size if len(shape) == 3 else None
        self.locations = 1
        if self.patch_size is not None:
            down, across = patch_grid(shape[1], shape[2], self.patch_size)
            self.locations = down * across
        self.embed = nn.Linear(math.prod(shape) // self.locations, width)
        self.sizes = nn.Parameter(0.5 * torch.randn(self.locations, width)) if sizes else None

    def forward(self, rows: Tensor) -> Tensor:
        """(n, ...) rows to (n, t, width)."""
        patches = rows.flatten(1).unsqueeze(1) if self.patch_size is None else cut(rows, self.patch_size)
        tokens: Tensor = self.embed(patches)
        if self.sizes is None:
            return tokens
        return tokens + patches.square().mean(dim=2, keepdim=True).clamp_min(SMALLEST_SIZE).log() * self.sizes


class InstanceSAU(nn.Module):
    """Rows to embeddings (n, width): the mean over a SAU's tokens."""

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        width: int = 128,
        depth: int = 3,
        patch_size: int | None = 16,
        heads: int = 4,
        dropout: float = 0.0,
        sizes: bool = False,
    ) -> None:
        super().__init__()
        self.tokens = Tokens(shape, width=width, patch_size=patch_size, sizes=sizes)
        self.body = SAU(width, depth, locations=self.tokens.locations, heads=heads)
        self.drop = nn.Dropout(dropout)

    def forward(self, rows: Tensor) -> Tensor:
        """(n, ...) rows to (n, width)."""
        out: Tensor = self.drop(self.body(self.tokens(rows))).mean(dim=1)
        return out


class SetSAU(nn.Module):
    """Embeddings of one set to contextual ones; row order does not matter."""

    def __init__(self, width: int, depth: int = 1, heads: int = 4) -> None:
        super().__init__()
        self.body = SAU(width, depth, heads=heads)

    def forward(self, rows: Tensor) -> Tensor:
        """(n, width) rows of one set to (n, width)."""
        out: Tensor = self.body(rows.unsqueeze(0)).squeeze(0)
        return out


HEADS = 4


def vit(
    shape: tuple[int, int, int], *, width: int = 128, depth: int = 3, patch_size: int | None = 16, sizes: bool = False
) -> nn.Module:
    """A ViT from images (n, c, h, w) to embeddings (n, width).

    `width` is a multiple of 4, the number of heads; None as `patch_size` makes one token of an image; `sizes` as of
    `Tokens`.
    """
    if width < 1 or width % HEADS or depth < 1:
        raise ValueError(f"width must be a multiple of {HEADS} and depth at least 1, got {width} and {depth}")
    tokens = Tokens(shape, width=width, patch_size=patch_size, sizes=sizes)
    from timm.models.vision_transformer import VisionTransformer  # takes seconds to import: only where one is built

    network: nn.Module = VisionTransformer(
        img_size=shape[1:],
        patch_size=shape[1:] if patch_size is None else patch_size,
        in_chans=shape[0],
        num_classes=0,
        class_token=False,
        global_pool="avg",
        embed_dim=width,
        depth=depth,
        num_heads=HEADS,
    )
    network.patch_embed = tokens
    with torch.no_grad():
        network.pos_embed.normal_(std=POSITION_START)  # type: ignore[operator]
    return network
