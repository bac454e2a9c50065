"""A key holder's decoder, from released images to raw images.

Source: Yala et al., Syfer (2022), section 4.2 (the decoder that keeps encodings invertible in training, a SAU of
depth 3) and appendix E (the pictures decoded with parallel data that only the data owner has).

Differences from the paper, which does not say how tokens enter and leave the SAU: each location has a linear map of its
own on the way in, for the keys of methods like Syfer differ from location to location, and all locations share a map on
the way out. The answer is added to a learned image, at first the mean of the raw images.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from bench.nets.classifier import Standardise
from bench.nets.patches import cut, fitting_patch, fold, patch_grid
from bench.nets.training import Replay, adam, seeded, set_rate
from bench.nets.transformers import SAU
from bench.progress import report
from bench.seeds import derive, drawn, generator
from bench.validation import at_least

Shape = tuple[int, int, int]


class Decoder(nn.Module):
    """Released images to raw images: a map by location, a SAU.

    `patch_size` divides both sides of the raw image; None takes the largest up to 16 that leaves two patches a
    side, or the whole image.
    """

    def __init__(
        self, released: Shape, raw: Shape, *, patch_size: int | None = None, width: int = 128, depth: int = 3
    ) -> None:
        super().__init__()
        self.raw = raw
        self.patch_size = patch_size or fitting_patch(raw[1], raw[2]) or math.gcd(raw[1], raw[2])
        down, across = patch_grid(raw[1], raw[2], self.patch_size)
        self.locations = down * across
        # Token meets patch where the released image falls into the same grid of squares; else every token sees it all.
        side = released[1] // down
        self.released_patch = side if side and released[1:] == (side * down, side * across) else None
        numbers = math.prod(released) // (self.locations if self.released_patch else 1)
        self.enter = nn.Parameter(torch.randn(self.locations, numbers, width) / math.sqrt(numbers))
        self.body = SAU(width, depth, locations=self.locations)
        self.leave = nn.Linear(width, raw[0] * self.patch_size**2)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)
        self.mean = nn.Parameter(torch.zeros(raw))

    def start_at(self, images: Tensor) -> None:
        """Begin with the mean of raw images (n, c, h, w)."""
        self.mean.data = images.mean(dim=0)

    def forward(self, released: Tensor) -> Tensor:
        """Raw images (n, c, h, w) of released ones, unbounded."""
        if self.released_patch is None:
            tokens = released.flatten(1).unsqueeze(1).expand(-1, self.locations, -1)
        else:
            tokens = cut(released, self.released_patch)
        entered = torch.bmm(tokens.transpose(0, 1), self.enter).transpose(0, 1)
        return self.mean + fold(self.leave(self.body(entered)), self.raw, self.patch_size)


def train_decoder(
    released: Tensor,
    raw: Tensor,
    *,
    steps: int,
    seed: int,
    batch: int = 64,
    width: int = 128,
    learning_rate: float = 2e-3,
) -> nn.Module:
    """Train a decoder of released images on raw images, by squared error.

    Row i of both is one image, released under one key. Adam's rate falls to zero along a cosine. The module is in
    evaluation mode, its output unbounded. Raises ValueError for tensors that are not images row by row.
    """
    if released.ndim != 4 or raw.ndim != 4 or len(released) != len(raw) or not len(raw):
        raise ValueError(
            f"a decoder learns from image pairs, (n, c, h, w) both, at least one: got shapes {tuple(released.shape)} "
            f"and {tuple(raw.shape)}"
        )
    at_least(1, steps=steps, batch=batch)
    device = raw.device
    with seeded(derive(seed, "decoder"), device):
        decoder = Decoder(_shape(released), _shape(raw), width=width)
    decoder.start_at(raw)
    network = nn.Sequential(Standardise(released), decoder).to(device)
    optimiser = adam(network.parameters(), learning_rate, device)

    def learn(seen: Tensor, truth: Tensor) -> Tensor:
        """One step: the loss before it."""
        optimiser.zero_grad(set_to_none=True)
        loss: Tensor = (network(seen) - truth).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        return loss.detach()

    order, learning = generator(derive(seed, "rows"), device), Replay(learn)
    for step in range(steps):
        rows = drawn(len(raw), order, batch)
        set_rate(optimiser, learning_rate * 0.5 * (1 + math.cos(math.pi * step / steps)))
        loss = learning(released[rows], raw[rows])
        if (step + 1) % max(1, steps // 10) == 0:
            report(f"decoder, mean squared error {float(loss):.4f}, step", step + 1, steps)
    return network.eval()


def _shape(images: Tensor) -> Shape:
    c, h, w = images.shape[1:]
    return c, h, w
