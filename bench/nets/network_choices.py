"""Choices and sizes of networks that plug-ins offer as parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from bench.validation import at_least, one_of, positive_and_finite

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


@dataclass(frozen=True)
class CVAECourse:
    """Training of a conditional variational autoencoder.

    Args:
        formula: Of the divergence.
        beta: Its weight beside the squared error; 0 is a plain autoencoder with noise in its latents.
        epochs: Passes over the rows at most.
        batch: Rows a step at most.
        learning_rate: Of Adam.
        patience: Epochs without a lower loss of the judged rows after which training ends, and the best epoch is taken;
            None trains through all epochs and takes the last.
    """

    formula: Formula
    beta: float
    epochs: int
    batch: int
    learning_rate: float
    patience: int | None

    def __post_init__(self) -> None:
        one_of(get_args(Formula), formula=self.formula)
        at_least(1, epochs=self.epochs, batch=self.batch, patience=self.patience)
        if not (self.beta >= 0 and math.isfinite(self.beta)):
            raise ValueError(f"beta must be at least 0 and finite, got {self.beta}")
        positive_and_finite(learning_rate=self.learning_rate)
