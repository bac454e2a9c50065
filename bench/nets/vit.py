"""Vision transformer (ViT) through timm, sized for medical images from 8 pixels up; random weights, nothing downloaded.

Source: Dosovitskiy et al., An image is worth 16x16 words (2021); timm's `VisionTransformer` with the mean over the
tokens instead of a class token.

Differences from the paper: patches enter through `bench.nets.sau.Tokens`, which can tell the network the size of each
patch, and positions start at N(0, 0.5^2), as in our SAU and for its reason: at the usual 0.02 the layers take hundreds
of steps to tell one patch from another.
"""

from __future__ import annotations

import torch
from torch import nn

from bench.nets.sau import POSITION_START, Tokens

HEADS = 4


def vit(
    shape: tuple[int, int, int], *, width: int = 128, depth: int = 3, patch_size: int | None = 16, sizes: bool = False
) -> nn.Module:
    """A ViT from images (n, c, h, w) to embeddings (n, width).

    Args:
        shape: Channels, height and width of an image.
        width: Numbers a token and an embedding; a multiple of 4, the number of heads.
        depth: Transformer blocks.
        patch_size: Side of a square patch in pixels; None makes one token of a whole image.
        sizes: Tell the network the size of each patch; see `Tokens`.
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
