"""Autoencoder of images to codes of a few hundred numbers; its training.

Source: Yala et al., Syfer (2022), appendix D. Encoder: convolutions (3x3, stride 2), each followed by a leaky ReLU and
batch normalisation, then average pooling. Decoder: as many transposed convolutions. Trained by mean squared error.

Differences from the paper:
- It does not say how many channels a layer has: they double from a sixteenth of the code's width up to that width.
- Six layers bring its 64 pixels down to one; other sizes take as many as that needs. Pooling then has nothing to do.
- The decoder's last layer has neither activation nor batch normalisation, which an image's pixels would not survive,
  and begins at the mean image.
- Optimiser, rate and length of training are not stated: Adam, a rate that rises over a tenth of the steps and falls
  along a cosine, clipped gradients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bench.checkpoint import steps
from bench.memory.rows import by_blocks
from bench.nets.classifier import Precision
from bench.nets.training import Replay, adam, set_rate
from bench.progress import report
from bench.seeds import derive, drawn, generator
from bench.validation import at_least, positive

LONGEST_GRADIENT = 1.0
ROWS = 256


class Autoencoder(nn.Module):
    """Images of `shape` (c, h, w) to codes (n, width) and back.

    Args:
        shape: Channels, height and width of an image.
        width: Numbers a code.
    """

    mean: Tensor

    def __init__(self, shape: tuple[int, int, int], width: int) -> None:
        super().__init__()
        at_least(1, width=width)
        c, h, w = shape
        sizes = [(h, w)]
        while sizes[-1] != (1, 1) or len(sizes) == 1:
            sizes.append(((sizes[-1][0] + 1) // 2, (sizes[-1][1] + 1) // 2))
        depth = len(sizes) - 1
        channels = [c, *(max(1, min(width, width * 2**step // 16)) for step in range(depth - 1)), width]
        down = [_convolution(*channels[step : step + 2]) for step in range(depth)]
        up = [
            _transposed(channels[step + 1], channels[step], sizes[step], last=step == 0)
            for step in reversed(range(depth))
        ]
        self.encoder = nn.Sequential(*down, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.decoder = nn.Sequential(nn.Unflatten(1, (width, 1, 1)), *up)
        self.register_buffer("mean", torch.zeros(shape))

    def start_at(self, images: Tensor) -> None:
        """Use the mean of images (n, c, h, w) as origin."""
        self.mean = images.mean(dim=0)

    def encode(self, images: Tensor) -> Tensor:
        """Codes (n, width) of images (n, c, h, w), unbounded."""
        code: Tensor = self.encoder(images - self.mean)
        return code

    def decode(self, codes: Tensor) -> Tensor:
        """Images (n, c, h, w) of codes (n, width), unbounded."""
        images: Tensor = self.mean + self.decoder(codes)
        return images

    def forward(self, images: Tensor) -> Tensor:
        """Images (n, c, h, w) as they come back from their codes."""
        return self.decode(self.encode(images))


def _convolution(entering: int, leaving: int) -> nn.Module:
    layer = nn.Conv2d(entering, leaving, 3, stride=2, padding=1)
    return nn.Sequential(layer, nn.LeakyReLU(0.2), nn.BatchNorm2d(leaving))


def _transposed(entering: int, leaving: int, size: tuple[int, int], *, last: bool) -> nn.Module:
    """Upsampling to `size`: 2n - 1 of n, plus 1 if even."""
    more = (1 - size[0] % 2, 1 - size[1] % 2)
    layer = nn.ConvTranspose2d(entering, leaving, 3, stride=2, padding=1, output_padding=more)
    return layer if last else nn.Sequential(layer, nn.LeakyReLU(0.2), nn.BatchNorm2d(leaving))


@dataclass(frozen=True)
class ReconstructionCourse:
    """Steps, batch (at least 2), peak rate and precision of a training."""

    steps: int
    batch: int
    learning_rate: float
    precision: Precision

    def __post_init__(self) -> None:
        at_least(1, steps=self.steps)
        at_least(2, batch=self.batch)
        positive(learning_rate=self.learning_rate)


def train_autoencoder(network: Autoencoder, images: Tensor, course: ReconstructionCourse, seed: int) -> None:
    """Train `network` in place on images; leave it in evaluation mode.

    Same seed, same bits on a CPU. Raises FloatingPointError for a loss that is not finite.
    """
    device, rise = images.device, max(1, course.steps // 10)
    order = generator(derive(seed, "rows"), device)
    optimiser = adam(network.parameters(), course.learning_rate, device)
    network.start_at(images)
    network.train().to(memory_format=torch.channels_last)

    def learn(batch: Tensor) -> Tensor:
        """One step: the mean squared error before it."""
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=course.precision == "bfloat16"):
            back = network(batch)
        loss: Tensor = (back.float() - batch).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), LONGEST_GRADIENT)
        optimiser.step()
        return loss.detach()

    learning = Replay(learn)
    for step in steps(course.steps, network, optimiser, order):
        fall = 0.5 * (1 + math.cos(math.pi * max(0, step - rise) / max(1, course.steps - rise)))
        set_rate(optimiser, course.learning_rate * min((step + 1) / rise, fall))
        rows = drawn(len(images), order, course.batch)
        loss = learning(images[rows].contiguous(memory_format=torch.channels_last))
        if (step + 1) % max(1, course.steps // 20) == 0 or step + 1 == course.steps:
            value = float(loss)
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"training diverged by step {step + 1}: the loss must be finite, got {value}; lower learning_rate"
                )
            report(f"autoencoder, mean squared error {value:.5f}, step", step + 1, course.steps)
    network.eval().requires_grad_(False)


def encoded(network: Autoencoder, images: Tensor) -> Tensor:
    """Codes (n, width) of images (n, c, h, w), float64, without gradients."""
    with torch.no_grad():
        return torch.cat([network.encode(part) for part in torch.split(images, ROWS)]).double()


def decoded(network: Autoencoder, codes: Tensor, like: Tensor | None = None) -> Tensor:
    """Images of codes (n, width), float32; `like` as in `by_blocks`."""
    with torch.no_grad():
        return by_blocks(codes, lambda part: network.decode(part.float()), ROWS, like=like)


def unexplained(network: Autoencoder, images: Tensor) -> float:
    """Unexplained share of the images' variance about the training mean."""
    back = decoded(network, encoded(network, images)).double()
    whole = (images.double() - network.mean.double()).square().sum()
    return float((back - images.double()).square().sum() / whole)
