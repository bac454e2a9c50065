"""Pretrained networks of images: the input they are given, and their vectors.

Images are resized to the network's side (antialiased), stay float32, and grey ones become as many equal channels as the
network reads, normalised by its means and deviations. They are neither rounded to 8 bits nor clipped to [0, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch

from bench.contract.extractor import Embedding
from bench.types import NotApplicable, State, by_blocks

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Means and deviations of ImageNet's channels."""


@dataclass(frozen=True, eq=False)
class ImageNetwork(Embedding):
    """A network without its classifier, and how its input is prepared.

    Args:
        who: Its name in messages.
        network: Images (n, `channels`, *`side`) to features (n, d), or with more dimensions.
        channels: Of its input.
        side: Height and width in pixels of its input.
        mean, std: Of the channels, one or `channels` numbers each.
        batch: Images at a time.
        mode: Interpolation.
        told: Notes for the record.
    """

    who: str
    network: torch.nn.Module
    channels: int
    side: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    batch: int
    mode: Literal["bilinear", "bicubic"] = "bilinear"
    told: Mapping[str, int | float | str] = field(default_factory=dict)

    def embed(self, samples: torch.Tensor) -> torch.Tensor:
        """Images (n, c, h, w) of any side to (n, d)."""
        if samples.ndim != 4 or samples.shape[1] not in (1, self.channels):
            raise NotApplicable(
                f"{self.who} reads images of 1 or {self.channels} channels, and these rows have shape "
                f"{tuple(samples.shape[1:])}"
            )
        device, images = samples.device, samples
        self.network.to(device)
        if tuple(images.shape[2:]) != self.side:
            images = torch.nn.functional.interpolate(
                images, size=self.side, mode=self.mode, antialias=True, align_corners=False
            )
        mean, std = (torch.tensor(each, device=device).view(-1, 1, 1) for each in (self.mean, self.std))
        vectors: torch.Tensor = self.network((images.expand(-1, self.channels, -1, -1) - mean) / std)
        return vectors.flatten(1)

    def read(self, samples: torch.Tensor) -> torch.Tensor:
        """`embed` of many images, `batch` at a time, without gradients."""
        with torch.no_grad():
            return by_blocks(samples, self.embed, self.batch)

    def state(self) -> State:
        """Empty: weights are read again from their file."""
        return {}

    def notes(self) -> Mapping[str, int | float | str]:
        """The input side, and the notes given."""
        return {"input side": self.side[0], **self.told}
