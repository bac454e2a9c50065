"""ResNet-18 through timm, sized for medical images from 8 pixels up.

Source: He et al. 2016; timm's `ResNet` with basic blocks. The usual stem (7x7 stride 2, then pooling) makes a 64-pixel
image 16 pixels wide before the first block. Smaller images skip the pooling (below 48 pixels) or the stride as well
(below 24), so that the first block still sees about that much.
"""

from __future__ import annotations

from torch import nn

from bench.validation import at_least


def resnet18(
    shape: tuple[int, int, int], outputs: int, *, width: int = 64, dropout: float = 0.0, features: bool = False
) -> nn.Module:
    """A ResNet-18 with random weights for images of `shape` (c, h, w).

    Args:
        shape: Channels, height and width of an image.
        outputs: Logits of the last layer; with `features` it is left out.
        width: Channels of the first stage: 64 is a ResNet-18, 32 a ResNet-18 of half the width.
        dropout: Share of the pooled features dropped before the last layer.
        features: Return the pooled features (n, 8 * width) instead of logits (n, outputs).
    """
    channels, height, across = shape
    at_least(1, width=width, outputs=outputs)
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
    if side < 24:
        network.conv1 = nn.Conv2d(channels, 64, kernel_size=7, stride=1, padding=3, bias=False)
    return network
