"""Choices and sizes of networks that plug-ins offer as parameters: known without building a network."""

from __future__ import annotations

import math
from typing import Literal

from bench.validation import at_least

Encoder = Literal["sau", "vit", "resnet18"]
Formula = Literal["corrected", "official-code"]
Coupling = Literal["gin", "glow"]
Downsampling = Literal["haar", "i-revnet"]
Optimiser = Literal["sgd", "adam"]


def even_square(numbers: int) -> int:
    """Token width: the smallest even perfect square >= `numbers`.

    >>> even_square(256), even_square(768), even_square(196), even_square(49)
    (256, 784, 196, 64)
    """
    side = math.isqrt(numbers - 1) + 1
    return (side + side % 2) ** 2


def check_sizes(*, width: int, blocks: int, depth: int) -> None:
    """Raise ValueError unless these are sizes of an obfuscator."""
    at_least(1, blocks=blocks, depth=depth)
    if width < 4 or width % 4 or math.isqrt(width) ** 2 != width:
        raise ValueError(f"width must be an even square such as 64, 144 or 256, got {width}")
