"""Conditional invertible network of CADP, built from FrEIA's modules.

Source: Tölle et al., Content-aware differential privacy with conditional invertible neural networks (2022), section 4
and appendix A; Ardizzone et al., Guided image generation with conditional INNs (2019). Images go through levels of
downsampling, each followed by couplings of a convolutional subnetwork (after which some channels may leave for the
latent), and as flat vectors through couplings of a linear subnetwork; tables only through the linear couplings. A
random permutation stands after every coupling.

Differences from the paper:
- Rows are standardised by the public rows (one mean and deviation a channel, or a column), and the input noise of
  training is in those units.
- The condition enters ten times as large: among hundreds of inputs its few numbers are otherwise learned late.
- All arithmetic is float32, also on accelerators: in bfloat16 a trained flow inverts to 0.05 only, in float32 to 1e-6.
- Permutations come from torch: FrEIA's own reseed numpy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from bench.nets.network_choices import Coupling, Downsampling
from bench.nets.normalising_flow import Flow
from bench.types import NotApplicable

FIRST_WEIGHT = 0.03
CONDITION_GAIN = 10.0
SMALLEST_SIDE = 7


@dataclass(frozen=True)
class CINNSizes:
    """Sizes of the network.

    Args:
        coupling: "glow" scales and shifts; "gin" does so with the volume kept.
        downsampling: Four pixels become four channels, by a wavelet or as they are.
        levels: How often an image is downsampled; None: once for each of `splits`, or without any while no side falls
            below 7 pixels, but once at least (28 pixels: 2 levels, 128 pixels: 4).
        splits: The share of its channels, in (0, 1], that goes on from each level, rounded down; the others are latent
            as they are. As many as levels, or none: all go on.
        blocks: Couplings a level.
        width: Channels of their subnetworks: three 3 x 3 convolutions.
        flat_blocks: Couplings of flat vectors.
        flat_width: Width of their subnetworks, three linear layers.
        clamp: A coupling scales by at most exp(clamp).
        noise: Standard deviation of Gaussian noise on standardised rows, while training.
    """

    coupling: Coupling
    downsampling: Downsampling
    levels: int | None
    splits: tuple[float, ...]
    blocks: int
    width: int
    flat_blocks: int
    flat_width: int
    clamp: float
    noise: float


class Shuffle(nn.Module):
    """A random order of channels or elements, in FrEIA's interface."""

    order: Tensor
    back: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        order = torch.randperm(channels)
        self.register_buffer("order", order)
        self.register_buffer("back", order.argsort())

    def forward(self, x: tuple[Tensor], c: list[Tensor], rev: bool = False) -> tuple[tuple[Tensor], float]:
        """The tuple's rows in that order, or back; log determinant 0."""
        return (x[0][:, self.back if rev else self.order],), 0.0


class CINN(Flow):
    """A conditional flow for images (c, h, w) or vectors (d,).

    Conditions hold k numbers, 0 for none. Raises NotApplicable for levels that do not divide the image, shares that
    leave no channels, and fewer than two elements.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, shape: tuple[int, ...], conditions: int, sizes: CINNSizes) -> None:
        super().__init__()
        self.shape, self.conditions, self.noise = shape, conditions, sizes.noise
        per_channel = (shape[0], *(1 for _ in shape[1:]))
        self.register_buffer("mean", torch.zeros(per_channel))
        self.register_buffer("std", torch.ones(per_channel))
        stack = partial(_couplings, coupling=sizes.coupling, conditions=conditions, clamp=sizes.clamp)
        self.spatial = nn.ModuleList()
        self.leaving: dict[int, list[int]] = {}  # after which module so many channels go on, and so many leave
        now = shape
        left: list[int] = []
        if len(shape) == 3:
            levels = levels_of(shape, sizes.levels or len(sizes.splits) or None)
            for _, share in zip(range(levels), sizes.splits or (1.0,) * levels, strict=True):
                down = _downsampling(sizes.downsampling, now)
                now = (4 * now[0], now[1] // 2, now[2] // 2)
                self.spatial.extend((down, *stack(now, blocks=sizes.blocks, width=sizes.width)))
                if (on := int(share * now[0])) < now[0]:
                    if not on:
                        raise NotApplicable(f"of {now[0]} channels of a level, a share of {share} leaves none to go on")
                    self.leaving[len(self.spatial) - 1] = [on, now[0] - on]
                    left.append((now[0] - on) * now[1] * now[2])
                    now = (on, *now[1:])
            self.inner = now
        if (elements := math.prod(now)) < 2:
            raise NotApplicable(
                f"couplings transform some elements by others: needs at least 2 elements, got {elements}"
            )
        flat = (elements,)
        self.parts = [*flat, *left]
        """Elements of a latent that come out of the flat couplings, and out of each level that some leave."""
        self.flat = nn.ModuleList(stack(flat, blocks=sizes.flat_blocks, width=sizes.flat_width))

    def standardise_by(self, samples: Tensor) -> None:
        """Standardise by channels or columns of rows, constant ones aside."""
        axes = (0, 2, 3) if samples.ndim == 4 else (0,)
        std, mean = torch.std_mean(samples.double(), dim=axes, correction=0, keepdim=True)
        self.mean.copy_(mean[0])
        self.std.copy_(torch.where(std > 0, std, 1.0)[0])

    def encode(self, samples: Tensor, condition: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """See `Flow.encode`. Raises ValueError for rows or conditions of another shape."""
        if tuple(samples.shape[1:]) != self.shape:
            raise ValueError(f"this flow reads rows of shape {self.shape}, got {tuple(samples.shape[1:])}")
        inputs = self._inputs(condition, len(samples))
        rows = (samples - self.mean) / self.std
        if self.training:
            rows = rows + self.noise * torch.randn_like(rows)
        log_det = -self.std.log().expand(self.shape).sum().expand(len(rows))
        left = []
        for number, module in enumerate(self.spatial):
            (rows,), change = module((rows,), c=_spread(inputs, rows))
            log_det = log_det + change
            if number in self.leaving:
                rows, out = torch.split(rows, self.leaving[number], dim=1)
                left.append(out.flatten(1))
        rows = rows.flatten(1)
        for module in self.flat:
            (rows,), change = module((rows,), c=inputs)
            log_det = log_det + change
        return (torch.cat((rows, *left), dim=1) if left else rows), log_det

    def decode(self, latent: Tensor, condition: Tensor | None = None) -> Tensor:
        """See `Flow.decode`. Raises ValueError for conditions of another shape."""
        inputs = self._inputs(condition, len(latent))
        rows, *left = torch.split(latent, self.parts, dim=1)
        for module in reversed(self.flat):
            (rows,), _ = module((rows,), c=inputs, rev=True)
        if self.spatial:
            rows = rows.reshape(-1, *self.inner)
        for number in reversed(range(len(self.spatial))):
            if number in self.leaving:
                rows = torch.cat((rows, left.pop().reshape(len(rows), -1, *rows.shape[2:])), dim=1)
            (rows,), _ = self.spatial[number]((rows,), c=_spread(inputs, rows), rev=True)
        return rows * self.std + self.mean

    def _inputs(self, condition: Tensor | None, rows: int) -> list[Tensor]:
        shape = (rows, 0) if condition is None else tuple(condition.shape)
        if shape != (rows, self.conditions):
            raise ValueError(f"this flow reads conditions of shape {(rows, self.conditions)}, got {shape}")
        return [] if condition is None or not self.conditions else [CONDITION_GAIN * condition]


def levels_of(shape: tuple[int, ...], levels: int | None) -> int:
    """Downsamplings of an image; NotApplicable if it cannot be halved so often."""
    side, possible = min(shape[1:]), 0
    while all(length % 2 ** (possible + 1) == 0 for length in shape[1:]):
        possible += 1
    if levels is None:
        levels = max(1, sum(side >= SMALLEST_SIDE * 2**level for level in range(1, possible + 1)))
    if levels > possible:
        fewer = "set levels (or splits) to at most that, or " if possible else ""
        raise NotApplicable(
            f"{levels} levels halve both sides of an image {levels} times: {shape[1]}x{shape[2]} can be halved "
            f"{possible} times; {fewer}prepare the images at a size that can be halved so often"
        )
    return levels


def _downsampling(kind: Downsampling, shape: tuple[int, ...]) -> nn.Module:
    from FrEIA.modules import HaarDownsampling, IRevNetDownsampling  # takes a second: only where one is built

    module: nn.Module = (HaarDownsampling if kind == "haar" else IRevNetDownsampling)([shape])
    return module


def _couplings(
    shape: tuple[int, ...], *, coupling: Coupling, conditions: int, clamp: float, blocks: int, width: int
) -> list[nn.Module]:
    from FrEIA.modules import GINCouplingBlock, GLOWCouplingBlock

    block = {"gin": GINCouplingBlock, "glow": GLOWCouplingBlock}[coupling]
    read = [(conditions, *shape[1:])] if conditions else []
    subnet = partial(_subnet, spatial=len(shape) == 3, width=width)
    layers: list[nn.Module] = []
    for _ in range(blocks):
        layers += [block([shape], dims_c=read, subnet_constructor=subnet, clamp=clamp), Shuffle(shape[0])]
    return layers


def _subnet(inputs: int, outputs: int, *, spatial: bool, width: int) -> nn.Sequential:
    """Three layers; the last starts at zero, so couplings start as identity."""

    def layer(one: int, other: int) -> nn.Module:
        return nn.Conv2d(one, other, 3, padding=1) if spatial else nn.Linear(one, other)

    network = nn.Sequential(layer(inputs, width), nn.ReLU(), layer(width, width), nn.ReLU(), layer(width, outputs))
    for number, part in enumerate(network):
        for weight in part.parameters():
            nn.init.normal_(weight, std=FIRST_WEIGHT if number < 4 else 0.0)
    return network


def _spread(condition: list[Tensor], rows: Tensor) -> list[Tensor]:
    """The condition (n, k) at every pixel of the images."""
    return [part[:, :, None, None].expand(-1, -1, *rows.shape[2:]) for part in condition]
