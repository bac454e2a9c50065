"""Dauntless: a secret random linear map for each patch of the image.

Source: Xiao and Devadas, Dauntless (2021), as the Syfer paper (section 5) compares with it: "applies a separate random
linear layer to each 16x16 pixel patch of the images, with each random weight initialized according to a standard
Gaussian distribution".

Differences from the paper: none known; what it leaves open is chosen so. Pixels enter as they are, in [0, 1]: they are
not standardised, so that an encoded patch grows with its brightness. There is no bias. The maps are part of the
key: one a patch location, the same for all images. With colour images a patch spans all channels. Encoded patches stay
where they were, and the release is again an image of the same shape. Labels are released as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.nets.patches import cut, fold, patch_grid, patched_shape
from bench.randomness import Secret
from bench.types import Dataset, Key, Method, Release, Scheme, State, by_blocks, paired
from bench.validation import at_least


@dataclass(frozen=True)
class Dauntless(Method):
    """One standard Gaussian matrix a patch location.

    Args:
        patch_size: Side of a square patch in pixels; it must divide both sides of the image.
    """

    name: ClassVar[str] = "dauntless"
    source: ClassVar[str] = "Xiao and Devadas 2021, as in Yala et al. 2022 (Syfer), section 5"
    needs_public: ClassVar[bool] = False

    patch_size: int = 16

    def __post_init__(self) -> None:
        at_least(1, patch_size=self.patch_size)

    def fit(self, public: Dataset, seed: int) -> DauntlessScheme:
        """Learns only the image shape. Raises NotApplicable for tables and indivisible sides."""
        shape = patched_shape(self.name, public, self.patch_size)
        return DauntlessScheme(shape, self.patch_size, public.samples.device)

    def load(self, state: State) -> DauntlessScheme:
        """The scheme of `DauntlessScheme.state`. Raises ValueError for another patch size."""
        c, h, w, patch_size = (int(number) for number in state["shape"])
        if patch_size != self.patch_size:
            raise ValueError(f"the stored scheme has patch_size {patch_size}, this method has {self.patch_size}")
        return DauntlessScheme((c, h, w), patch_size, state["shape"].device)


@dataclass(frozen=True)
class DauntlessScheme(Scheme):
    """Images of `shape` (c, h, w) in patches; keys on `device`."""

    shape: tuple[int, int, int]
    patch_size: int
    device: torch.device

    def sample_key(self, secret: Secret) -> DauntlessKey:
        """Fresh matrices."""
        c, h, w = self.shape
        down, across = patch_grid(h, w, self.patch_size)
        numbers = c * self.patch_size**2
        weights = secret.stream("dauntless").normal(down * across, numbers, numbers)
        return DauntlessKey(self, weights.to(self.device, torch.float32))

    def load_key(self, state: State) -> DauntlessKey:
        """The key that `DauntlessKey.state` described."""
        return DauntlessKey(self, state["weights"])

    def state(self) -> State:
        """Channels, height, width and patch size, int64."""
        return {"shape": torch.tensor((*self.shape, self.patch_size), device=self.device)}


@dataclass(frozen=True, eq=False)
class DauntlessKey(Key):
    """`weights` (locations, q, q) float32: encoded patch (q,) = patch @ weights[location]."""

    scheme: DauntlessScheme
    weights: torch.Tensor

    def release(self, private: Dataset) -> Release:
        """Encoded images (n, c, h, w) with the labels as they are."""
        return paired(self.query(private.samples), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Images encoded as in the release. Raises ValueError for other shapes."""
        shape, patch_size = self.scheme.shape, self.scheme.patch_size
        if tuple(samples.shape[1:]) != shape:
            raise ValueError(f"this key encodes images of shape {shape}, got {tuple(samples.shape[1:])}")

        def encode(part: torch.Tensor) -> torch.Tensor:
            patches = cut(part, patch_size).transpose(0, 1)
            return fold((patches @ self.weights).transpose(0, 1), shape, patch_size)

        return by_blocks(samples, encode)

    def state(self) -> State:
        """The matrices."""
        return {"weights": self.weights}
