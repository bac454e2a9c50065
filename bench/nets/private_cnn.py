"""A small network for private training: few weights to add noise to, and features of a known size.

Source: Papernot et al. 2021 (tempered sigmoids: tanh keeps activations and gradients bounded); Tramèr and Boneh 2021
(with few rows, normalised features under a linear layer beat deeper networks). One convolution, normalised by groups
(batch norm would mix rows), tanh, means over a grid, normalised again so that every row's gradient is about as long.
"""

from __future__ import annotations

from torch import nn

GRID = 7
GROUPS = 4


def private_cnn(shape: tuple[int, ...], outputs: int, *, width: int) -> nn.Sequential:
    """Logits (n, outputs) of standardised rows; the last layer, always linear, starts at zero.

    Args:
        shape: (c, h, w) of an image, or (d,) of a table's row, which has no layer but the last.
        outputs: Classes or findings.
        width: Channels of the convolution, a multiple of `GROUPS`.
    """
    if width < 1 or width % GROUPS:
        raise ValueError(f"width must be a multiple of {GROUPS} (groups that are normalised), got {width}")
    if len(shape) == 1:
        return nn.Sequential(nn.Identity(), _head(shape[0], outputs))
    channels, height, across = shape
    stride = max(1, round(min(height, across) / 16))
    grid = [min(GRID, (side - 1) // stride + 1) for side in (height, across)]
    features = nn.Sequential(
        nn.Conv2d(channels, width, kernel_size=7, stride=stride, padding=3),
        nn.GroupNorm(GROUPS, width, affine=False),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d((grid[0], grid[1])),
        nn.GroupNorm(GROUPS, width, affine=False),
        nn.Flatten(),
    )
    return nn.Sequential(features, _head(width * grid[0] * grid[1], outputs))


def _head(features: int, outputs: int) -> nn.Linear:
    head = nn.Linear(features, outputs)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head
