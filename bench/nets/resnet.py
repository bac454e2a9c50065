"""ResNet-18 through timm, sized for medical images from 8 pixels up.

Source: He et al. 2016; timm's `ResNet` with basic blocks. The usual stem (7x7 stride 2, then pooling) makes a 64-pixel
image 16 pixels wide before the first block. Smaller images skip the pooling (below 48 pixels) or the stride as well
(below 24), so that the first block still sees about that much.
"""

from __future__ import annotations

from typing import Any, cast

from torch import nn

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
) -> nn.Module:
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

    network: nn.Module = timm.create_model(
        "resnet18",
        num_classes=0 if features else outputs,
        in_chans=channels,
        channels=(width, 2 * width, 4 * width, 8 * width),
        drop_rate=dropout,
    )
    side = min(height, across)
    if side < 48:
        network.maxpool = nn.Identity()
    stem, stride = (width if narrow else 64), (1 if side < 24 else 2)
    if stem != 64 or stride != 2:
        network.conv1 = nn.Conv2d(channels, stem, kernel_size=7, stride=stride, padding=3, bias=False)
    if stem != 64:
        network.bn1 = nn.BatchNorm2d(stem)
        first = cast(Any, network.layer1)[0]
        first.conv1, first.downsample = nn.Conv2d(stem, width, kernel_size=3, padding=1, bias=False), None
    return network
