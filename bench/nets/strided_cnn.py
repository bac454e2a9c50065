"""The classifier of the CADP paper's figure 4: convolutions of stride 2, and two linear layers.

Source: Tölle et al. (CADP, 2022), section 4 ("convolutional blocks and two linear layers") and Table 1 (depth 2 for
MNIST at 28 pixels, 5 for OCT and chest X-rays at 128); the authors' code: 8, 16, ... channels, batch norm, Dropout2d of
one half, 100 numbers between the linear layers; for DP-SGD, in the place of batch norm, one group of all channels.

The paper leaves open: kernels (3x3 here), activations (ReLU), and depths at other sizes (here as many blocks as leave a
side of 4 pixels or more, which gives both of Table 1).
"""

from __future__ import annotations

import math
from typing import Literal

from torch import nn

from bench.validation import at_least

FIRST = 8
BETWEEN = 100
DROPOUT = 0.5
Norm = Literal["batch", "group"]


def usual_depth(height: int, across: int) -> int:
    """Blocks for images of that size: 2 for 28 pixels, 5 for 128; at least 1.

    >>> [usual_depth(side, side) for side in (8, 28, 64, 128)]
    [1, 2, 4, 5]
    """
    return max(1, int(math.log2(max(1, min(height, across) / 4))))


def strided_cnn(
    shape: tuple[int, ...], outputs: int, *, depth: int | None = None, dropout: float = DROPOUT, norm: Norm = "batch"
) -> nn.Sequential:
    """Features (n, 100), then logits (n, outputs), of images (n, c, h, w).

    Args:
        shape: (c, h, w) of an image.
        outputs: Classes or findings.
        depth: Blocks; None takes `usual_depth`.
        dropout: Share of the maps of a block that are dropped in training.
        norm: Batch norm; or "group", the norm of all channels of a row together, where no row may see another.
    """
    at_least(1, outputs=outputs, depth=depth)
    channels, height, across = shape
    layers: list[nn.Module] = []
    for block in range(usual_depth(height, across) if depth is None else depth):
        wide = FIRST * 2**block
        layers += [
            nn.Conv2d(channels, wide, kernel_size=3, stride=2, padding=1),
            nn.BatchNorm2d(wide) if norm == "batch" else nn.GroupNorm(1, wide),
            nn.ReLU(),
            nn.Dropout2d(dropout),
        ]
        channels, height, across = wide, (height + 1) // 2, (across + 1) // 2
    features = nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * height * across, BETWEEN), nn.ReLU())
    return nn.Sequential(features, nn.Linear(BETWEEN, outputs))
