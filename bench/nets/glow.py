"""Glow: a normalising flow for images with invertible 1x1 convolutions.

Source: Kingma and Dhariwal, Glow: Generative Flow with Invertible 1x1 Convolutions (2018), section 3 and the authors'
code: levels of squeeze, `depth` steps of (activation normalisation, 1x1 convolution, affine coupling whose scale is
sigmoid(h + 2)), and a split whose outgoing half has a learned conditional Gaussian prior. The latent is that half in
units of its prior (the code's eps), level by level, and at last what is left, all standard normal.

Differences from the authors' code:
- The 1x1 convolution is held as its LU decomposition (their option) and applied together with the normalisation.
- The network of a coupling has plain 3x3, 1x1 and zero-initialised 3x3 convolutions: no normalisation between them, no
  channel that marks the border, no learned factor on the last convolution.
- What enters a coupling's sigmoid or the exponential of a prior is bounded by 3 (tanh). Without a bound, latents that
  noise has moved decode to overflow (MNIST: even at a thousandth of the latent's range); with it, held-out bits are the
  same.
- The networks may train in bfloat16, for which inversion is not safe: on chest X-rays and MNIST images come back to
  1e-2 in it, to 1e-5 in float32. Held-out bits of the same weights are the same in both (within 0.001).
- The top has a fixed standard normal prior (their `learntop=False`, as in the DP-GLOW paper).
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, logsigmoid, pixel_shuffle, pixel_unshuffle, relu

from bench.nets.classifier import Precision
from bench.nets.normalising_flow import Flow
from bench.validation import at_least

SMALLEST_SIDE = 4
SMALLEST_DEVIATION = 1e-4
LIMIT = 3.0  # of what enters a sigmoid or an exponential
Shape = tuple[int, int, int]


def most_levels(h: int, w: int) -> int:
    """Number of times both sides halve; 0 if one is odd."""
    levels = 0
    while h % 2 == 0 and w % 2 == 0:
        h, w, levels = h // 2, w // 2, levels + 1
    return levels


def usual_levels(h: int, w: int) -> int:
    """Most levels, at least 1, that leave sides of 4 pixels."""
    return max(1, min(most_levels(h, w), (min(h, w) // SMALLEST_SIDE).bit_length() - 1))


class Mixing(nn.Module):
    """Activation normalisation and invertible 1x1 convolution, as one affine map."""

    order: Tensor
    signs: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        order, lower, upper = torch.linalg.lu(torch.linalg.qr(torch.randn(channels, channels, dtype=torch.float64))[0])
        diagonal = upper.diagonal()
        self.register_buffer("order", order.float())
        self.register_buffer("signs", diagonal.sign().float())
        self.lower = nn.Parameter(lower.float())
        self.upper = nn.Parameter(upper.float())
        self.log_diagonal = nn.Parameter(diagonal.abs().log().float())
        self.bias = nn.Parameter(torch.zeros(channels))
        self.log_scale = nn.Parameter(torch.zeros(channels))

    def initialise(self, x: Tensor) -> None:
        """Initialise so that channels of x have mean 0, deviation 1."""
        std, mean = torch.std_mean(x, dim=(0, 2, 3))
        self.bias.data = -mean
        self.log_scale.data = -std.clamp_min(SMALLEST_DEVIATION).log()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mixed channels, and log |det|, equal for all images."""
        weight = self._weight()
        y = linear(x.movedim(1, -1), weight, weight @ self.bias).movedim(-1, 1)
        return y, x.shape[2] * x.shape[3] * (self.log_scale + self.log_diagonal).sum()

    def inverse(self, y: Tensor) -> Tensor:
        """The inverse of `forward`."""
        weight = torch.linalg.inv(self._weight().double()).to(y)
        return linear(y.movedim(1, -1), weight, -self.bias).movedim(-1, 1)

    def _weight(self) -> Tensor:
        lower = self.lower.tril(-1) + torch.eye(len(self.signs), device=self.signs.device)
        upper = self.upper.triu(1) + torch.diag(self.signs * self.log_diagonal.exp())
        return self.order @ lower @ (upper * self.log_scale.exp())


class Coupling(nn.Module):
    """Shift and scale one half of the channels by the other."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(channels // 2, width, 3, padding=1)
        self.middle = nn.Conv2d(width, width, 1)
        self.leave = _zeros(width, channels)

    def forward(self, x: Tensor, precision: Precision) -> tuple[Tensor, Tensor]:
        """The channels after the coupling, and log |det| (n,)."""
        fixed, moved = x.chunk(2, dim=1)
        shift, log_scale = self._affine(fixed, precision)
        return torch.cat((fixed, (moved + shift) * log_scale.exp()), dim=1), log_scale.sum(dim=(1, 2, 3))

    def inverse(self, y: Tensor, precision: Precision) -> Tensor:
        """The inverse of `forward`."""
        fixed, moved = y.chunk(2, dim=1)
        shift, log_scale = self._affine(fixed, precision)
        return torch.cat((fixed, moved * (-log_scale).exp() - shift), dim=1)

    def _affine(self, fixed: Tensor, precision: Precision) -> tuple[Tensor, Tensor]:
        with torch.autocast(fixed.device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
            h = self.leave(relu(self.middle(relu(self.enter(fixed)))))
        shift, scale = h.to(fixed).chunk(2, dim=1)
        return shift, logsigmoid(_bounded(scale) + 2)


class Level(nn.Module):
    """Squeeze, steps, and the leaving half's prior; None at the top."""

    def __init__(self, channels: int, *, depth: int, width: int, top: bool) -> None:
        super().__init__()
        self.mixings = nn.ModuleList(Mixing(channels) for _ in range(depth))
        self.couplings = nn.ModuleList(Coupling(channels, width) for _ in range(depth))
        self.prior = None if top else _zeros(channels // 2, channels)

    def steps(self) -> list[tuple[Mixing, Coupling]]:
        """The steps in order."""
        return list(zip(cast(list[Mixing], self.mixings), cast(list[Coupling], self.couplings), strict=True))

    def expect(self, fixed: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log deviation of the leaving half, below the top."""
        mean, log_scale = cast(nn.Conv2d, self.prior)(fixed).chunk(2, dim=1)
        return mean, _bounded(log_scale)


class Glow(Flow):
    """An unconditional flow for images of one shape (c, h, w).

    2 ** `levels` must divide both sides, or ValueError. `precision` is that of the couplings' networks in training
    mode; in evaluation mode all is float32.
    """

    def __init__(self, shape: Shape, *, levels: int, depth: int, width: int, precision: Precision = "float32") -> None:
        super().__init__()
        at_least(1, levels=levels, depth=depth, width=width)
        c, h, w = shape
        if levels > most_levels(h, w):
            raise ValueError(
                f"a Glow of {levels} levels halves the sides {levels} times, and {h}x{w} allow it {most_levels(h, w)} "
                f"times: lower levels, or prepare the images at a size that {2**levels} divides"
            )
        self.shape, self.precision = shape, precision
        self.levels = nn.ModuleList(
            Level(c * 2 ** (number + 2), depth=depth, width=width, top=number + 1 == levels) for number in range(levels)
        )

    def encode(self, samples: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Latents (n, d) and log |det| (n,) of images."""
        return self._encode(samples)

    def initialise(self, samples: Tensor, condition: Tensor | None = None) -> None:
        """Normalise the activations of images (n, c, h, w), step by step."""
        with torch.no_grad():
            self._encode(samples, initialise=True)

    def decode(self, latent: Tensor, condition: Tensor | None = None) -> Tensor:
        """Images (n, c, h, w) of latents (n, d)."""
        _, h, w = self.shape
        sizes = [latent.shape[1] >> number + 1 for number in range(len(self.levels))]
        sizes[-1] *= 2
        parts, x = torch.split(latent, sizes, dim=1), latent[:, :0]
        for number, level in reversed(list(enumerate(self._levels()))):
            part = _last(parts[number].reshape(len(latent), -1, h >> number + 1, w >> number + 1))
            if level.prior is None:
                x = part
            else:
                mean, log_scale = level.expect(x)
                x = torch.cat((x, mean + part * log_scale.exp()), dim=1)
            for mixing, coupling in reversed(level.steps()):
                x = mixing.inverse(coupling.inverse(x, self._precision()))
            x = _last(pixel_shuffle(x, 2))
        return x.contiguous()

    def _encode(self, samples: Tensor, *, initialise: bool = False) -> tuple[Tensor, Tensor]:
        x, parts, log_det = samples, [], samples.new_zeros(len(samples))
        for level in self._levels():
            x = _last(pixel_unshuffle(x, 2))
            for mixing, coupling in level.steps():
                if initialise:
                    mixing.initialise(x)
                x, mixed = mixing(x)
                x, coupled = coupling(x, self._precision())
                log_det = log_det + mixed + coupled
            part = x
            if level.prior is not None:
                x, leaving = x.chunk(2, dim=1)
                mean, log_scale = level.expect(x)
                part, log_det = (leaving - mean) * (-log_scale).exp(), log_det - log_scale.sum(dim=(1, 2, 3))
            parts.append(part.flatten(1))
        return torch.cat(parts, dim=1), log_det

    def _levels(self) -> list[Level]:
        return list(cast(list[Level], self.levels))

    def _precision(self) -> Precision:
        return self.precision if self.training else "float32"


def _zeros(inputs: int, outputs: int) -> nn.Conv2d:
    """A 3x3 convolution that starts by giving 0."""
    layer = nn.Conv2d(inputs, outputs, 3, padding=1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(cast(Tensor, layer.bias))
    return layer


def _bounded(x: Tensor) -> Tensor:
    """Nearly x where it is small, never beyond the limit."""
    return LIMIT * torch.tanh(x / LIMIT)


def _last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)
