"""Syfer's network: learned layers between random layers.

A random layer is a random linear map for each place in an image, then SELU, then LayerNorm.

Source: Yala et al., Syfer (2022), section 5: "linear layers, followed by a SeLU nonlinearity and layer normalization.
All random linear layers weights were sampled from a unit Gaussian, and we used separate random networks per patch". The
maps have biases (also standard normal), as the stated count says: six layers of 16 maps from 256 to 256 numbers are the
6.3 M random parameters. LayerNorm has no weights of its own, so an image's encoding does not depend on its batch.

The network. Source: Yala et al., Syfer (2022), sections 4.2 and 5: blocks of learned layers (Simple Attention Units)
and a random layer. The stated counts, 6.6 M learned and 6.3 M random parameters, agree with five blocks of five SAU
layers each, positions learned once a block, and six random layers: one after each block and one more, which stands at
the end here, so that the first learned layers see the image itself and all they give passes at least two random layers.

Differences from the paper: images are standardised first (it does not say); patches that do not have `width` numbers
enter through one more learned linear map; the tokens are folded into a grey image, a square a token, so that networks
for images can read it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, selu

from bench.nets.classifier import Standardise
from bench.nets.network_choices import check_sizes
from bench.nets.patches import cut, fold, patch_grid
from bench.nets.transformers import SAULayer
from bench.validation import at_least

Draw = Callable[..., Tensor]  # takes a shape, one number an argument; gives standard normal numbers, any kind of float


def draw_layer(draw: Draw, *, locations: int, inputs: int, width: int) -> Tensor:
    """Standard normal float32 weights (locations, inputs + 1, width).

    On the device of `draw`; the last row is a bias.

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
    """Weights of `layers` layers; only the first reads `inputs` numbers."""
    at_least(1, layers=layers)
    return [
        draw_layer(draw, locations=locations, inputs=width if number else inputs, width=width)
        for number in range(layers)
    ]


def random_layer(tokens: Tensor, weights: Tensor) -> Tensor:
    """Tokens (b, t, inputs) through one layer: LayerNorm(SELU(x W + b)).

    One map per location.

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


HEADS = 4


class Obfuscator(nn.Module):
    """Images and the random layers of a key to encoded images.

    Args:
        shape: Of an image, (c, h, w).
        patch_size: Side of a square patch in pixels; it must divide both sides.
        width: Numbers a token: an even square (64, 144, 256, ...), for a token becomes a square of the encoded image.
        blocks: Learned stacks; a random layer follows each, and a second one the last.
        depth: SAU layers a stack.

    Raises:
        ValueError: Sizes that do not fit.
    """

    def __init__(self, shape: tuple[int, int, int], *, patch_size: int, width: int, blocks: int, depth: int) -> None:
        super().__init__()
        check_sizes(width=width, blocks=blocks, depth=depth)
        down, across = patch_grid(shape[1], shape[2], patch_size)
        self.patch_size, self.width, self.depth, self.side = patch_size, width, depth, math.isqrt(width)
        self.locations, numbers = down * across, shape[0] * patch_size**2
        self.encoded = (1, down * self.side, across * self.side)
        self.standardise = Standardise(torch.zeros(1, shape[0], 1, 1))
        self.enter = nn.Identity() if numbers == width else nn.Linear(numbers, width)
        self.stacks = nn.ModuleList(
            nn.Sequential(*(SAULayer(width, HEADS, self.locations if first else 0, True) for first in order))
            for order in [[True] + [False] * (depth - 1)] * blocks
        )

    def standardise_by(self, images: Tensor) -> None:
        """Standardise images by the mean and deviation of (n, c, h, w)."""
        self.standardise = Standardise(images)

    def draw(self, draw: Draw) -> list[Tensor]:
        """A key's `blocks` + 1 random layers, as in `draw_layers`."""
        layers = len(self.stacks) + 1
        return draw_layers(draw, locations=self.locations, inputs=self.width, width=self.width, layers=layers)

    def forward(self, images: Tensor, layers: Sequence[Tensor]) -> Tensor:
        """Encoded images (n, 1, h', w'): tokens of mean 0, variance 1."""
        tokens = self.enter(cut(self.standardise(images), self.patch_size))
        for stack, weights in zip(self.stacks, layers[:-1], strict=True):
            tokens = random_layer(stack(tokens), weights)
        return fold(random_layer(tokens, layers[-1]), self.encoded, self.side)
