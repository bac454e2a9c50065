"""Convolutional networks: ResNet-18, CADP's classifier, and a small private CNN.

ResNet-18 is timm's, sized for medical images from 8 pixels up.

Source: He et al. 2016; timm's `ResNet` with basic blocks. The usual stem (7x7 stride 2, then pooling) makes a 64-pixel
image 16 pixels wide before the first block. Smaller images skip the pooling (below 48 pixels) or the stride as well
(below 24), so that the first block still sees about that much.

The strided CNN is the classifier of the CADP paper's figure 4: convolutions of stride 2, and two linear layers.

Source: Tölle et al. (CADP, 2022), section 4 ("convolutional blocks and two linear layers") and Table 1 (depth 2 for
MNIST at 28 pixels, 5 for OCT and chest X-rays at 128); the authors' code: 8, 16, ... channels, batch norm, Dropout2d of
one half, 100 numbers between the linear layers; for DP-SGD, in the place of batch norm, one group of all channels.

The paper leaves open: kernels (3x3 here), activations (ReLU), and depths at other sizes (here as many blocks as leave a
side of 4 pixels or more, which gives both of Table 1).

The private CNN is a small network for private training: few weights to add noise to, and features of a known size.

Source: Papernot et al. 2021 (tempered sigmoids: tanh keeps activations and gradients bounded); Tramèr and Boneh 2021
(with few rows, normalised features under a linear layer beat deeper networks). One convolution, normalised by groups
(batch norm would mix rows), tanh, means over a grid, normalised again so that every row's gradient is about as long.
"""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import torch

from bench.validation import at_least

LEAST_WIDTH = 8
"""Channels that a stage needs: of fewer, torch 2.14 trains past its memory on processors without AVX-512 (the gradient
of a strided 1 x 1 convolution, rows channels last), which can end the process."""


def resnet18(
    shape: tuple[int, int, int],
    outputs: int,
    *,
    width: int = 64,
    dropout: float = 0.0,
    features: bool = False,
    narrow: bool = False,
) -> torch.nn.Module:
    """A ResNet-18 with random weights for images of `shape` (c, h, w).

    Args:
        shape: Channels, height and width of an image.
        outputs: Logits of the last layer; with `features` it is left out.
        width: Channels of the first stage: 64 is a ResNet-18, 32 a ResNet-18 of half the width. At least
            `LEAST_WIDTH`.
        dropout: Share of the pooled features dropped before the last layer.
        narrow: Make the stem as wide as the first stage in place of 64 channels: below that width it costs more than
            all stages together.
        features: Return the pooled features (n, 8 * width) instead of logits (n, outputs).
    """
    channels, height, across = shape
    at_least(LEAST_WIDTH, width=width)
    at_least(1, outputs=outputs)
    import timm  # takes seconds to import: only where a network is really built

    network: torch.nn.Module = timm.create_model(
        "resnet18",
        num_classes=0 if features else outputs,
        in_chans=channels,
        channels=(width, 2 * width, 4 * width, 8 * width),
        drop_rate=dropout,
    )
    side = min(height, across)
    if side < 48:
        network.maxpool = torch.nn.Identity()
    stem, stride = (width if narrow else 64), (1 if side < 24 else 2)
    if stem != 64 or stride != 2:
        network.conv1 = torch.nn.Conv2d(channels, stem, kernel_size=7, stride=stride, padding=3, bias=False)
    if stem != 64:
        network.bn1 = torch.nn.BatchNorm2d(stem)
        first = cast(Any, network.layer1)[0]
        first.conv1, first.downsample = torch.nn.Conv2d(stem, width, kernel_size=3, padding=1, bias=False), None
    return network


FIRST = 8
BETWEEN = 100
DROPOUT = 0.5
Norm = Literal["batch", "group"]


def usual_depth(height: int, across: int) -> int:
    """Blocks for images of that size, at least 1.

    2 for 28 pixels, 5 for 128.

    >>> [usual_depth(side, side) for side in (8, 28, 64, 128)]
    [1, 2, 4, 5]
    """
    return max(1, int(math.log2(max(1, min(height, across) / 4))))


def strided_cnn(
    shape: tuple[int, ...], outputs: int, *, depth: int | None = None, dropout: float = DROPOUT, norm: Norm = "batch"
) -> torch.nn.Sequential:
    """Network from images (n, c, h, w), by 100 features, to logits.

    Blocks are `usual_depth` unless told. Norm "group" is that of all channels of a row together, where no row may
    see another.
    """
    at_least(1, outputs=outputs, depth=depth)
    channels, height, across = shape
    layers: list[torch.nn.Module] = []
    for block in range(usual_depth(height, across) if depth is None else depth):
        wide = FIRST * 2**block
        layers += [
            torch.nn.Conv2d(channels, wide, kernel_size=3, stride=2, padding=1),
            torch.nn.BatchNorm2d(wide) if norm == "batch" else torch.nn.GroupNorm(1, wide),
            torch.nn.ReLU(),
            torch.nn.Dropout2d(dropout),
        ]
        channels, height, across = wide, (height + 1) // 2, (across + 1) // 2
    features = torch.nn.Sequential(
        *layers, torch.nn.Flatten(), torch.nn.Linear(channels * height * across, BETWEEN), torch.nn.ReLU()
    )
    return torch.nn.Sequential(features, torch.nn.Linear(BETWEEN, outputs))


GRID = 7
GROUPS = 4


def check_private_width(width: int) -> None:
    """Raise ValueError unless `private_cnn` takes this width."""
    if width < 1 or width % GROUPS:
        raise ValueError(f"width must be a multiple of {GROUPS} (groups that are normalised), got {width}")


def private_cnn(shape: tuple[int, ...], outputs: int, *, width: int) -> torch.nn.Sequential:
    """Convolution and linear head of standardised rows; logits start at zero.

    A table's row (d,) has no layer but the last. `width` is a multiple of `GROUPS`.
    """
    check_private_width(width)
    if len(shape) == 1:
        return torch.nn.Sequential(torch.nn.Identity(), _head(shape[0], outputs))
    channels, height, across = shape
    stride = max(1, round(min(height, across) / 16))
    grid = [min(GRID, (side - 1) // stride + 1) for side in (height, across)]
    features = torch.nn.Sequential(
        torch.nn.Conv2d(channels, width, kernel_size=7, stride=stride, padding=3),
        torch.nn.GroupNorm(GROUPS, width, affine=False),
        torch.nn.Tanh(),
        torch.nn.AdaptiveAvgPool2d((grid[0], grid[1])),
        torch.nn.GroupNorm(GROUPS, width, affine=False),
        torch.nn.Flatten(),
    )
    return torch.nn.Sequential(features, _head(width * grid[0] * grid[1], outputs))


def _head(features: int, outputs: int) -> torch.nn.Linear:
    head = torch.nn.Linear(features, outputs)
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    return head
