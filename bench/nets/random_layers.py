"""Random layers: a random linear map for each place in an image, then SELU, then LayerNorm.

Source: Yala et al., Syfer (2022), section 5: "linear layers, followed by a SeLU nonlinearity and layer normalization.
All random linear layers weights were sampled from a unit Gaussian, and we used separate random networks per patch". The
maps have biases (also standard normal), as the stated count says: six layers of 16 maps from 256 to 256 numbers are the
6.3 M random parameters. LayerNorm has no weights of its own, so an image's encoding knows nothing of its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, selu

from bench.validation import at_least

Draw = Callable[..., Tensor]  # takes a shape, one number an argument; gives standard normal numbers, any kind of float


def draw_layer(draw: Draw, *, locations: int, inputs: int, width: int) -> Tensor:
    """Standard normal float32 weights (locations, inputs + 1, width), where `draw` makes them; the last row is a bias.

    Args:
        draw: Where the random numbers come from: a secret's stream for keys, torch's own numbers for training.
        locations: Patches an image, each with a map of its own.
        inputs: Numbers a token that comes in.
        width: Numbers a token that goes out.

    Raises:
        ValueError: A size below 1.
    """
    at_least(1, locations=locations, inputs=inputs, width=width)
    return draw(locations, inputs + 1, width).float()


def draw_layers(draw: Draw, *, locations: int, inputs: int, width: int, layers: int) -> list[Tensor]:
    """Weights of `layers` layers, as in `draw_layer`; the first reads `inputs` numbers a token, the others `width`.

    Raises ValueError for a size below 1.
    """
    at_least(1, layers=layers)
    return [
        draw_layer(draw, locations=locations, inputs=width if number else inputs, width=width)
        for number in range(layers)
    ]


def random_layer(tokens: Tensor, weights: Tensor) -> Tensor:
    """Tokens (b, t, inputs) through one layer: LayerNorm(SELU(x W + b)), a map a location.

    Args:
        tokens: (b, t, inputs), one token a location.
        weights: (t, inputs + 1, width) as `draw_layer` gives them.

    Returns:
        (b, t, width); every token has mean 0 and variance 1. A token depends on the same token of the same row only.

    Raises:
        ValueError: Tokens that do not fit the weights.
    """
    locations, rows, width = weights.shape
    if tokens.ndim != 3 or tokens.shape[1:] != (locations, rows - 1):
        raise ValueError(f"these weights read tokens (b, {locations}, {rows - 1}), got shape {tuple(tokens.shape)}")
    mapped = torch.baddbmm(weights[:, -1:], tokens.transpose(0, 1), weights[:, :-1])
    return layer_norm(selu(mapped.transpose(0, 1)), (width,))


def random_layers(tokens: Tensor, layers: Sequence[Tensor]) -> Tensor:
    """Tokens (b, t, inputs) through one layer after another, as in `random_layer`."""
    for weights in layers:
        tokens = random_layer(tokens, weights)
    return tokens
