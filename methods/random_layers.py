"""Random layers: a secret random network for each patch, nothing learned.

Source: the random layers of Syfer (Yala et al. 2022, section 5; see `bench.nets.obfuscator`) without its trained
obfuscators: a rung of the ladder on which attacks show their reach. The kernel of a wide random network is nearly the
same whatever its weights, so the Gram matrices of a release by random layers are known in advance and it can be broken.

Differences from Syfer: no obfuscator layers, hence no public data; nothing mixes the patches. A patch has as many
numbers after each layer as before the first, and the release is again an image of the same shape. Labels are released
as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.nets import obfuscator
from bench.nets.patches import cut, fold, patch_grid, patch_sizes
from bench.randomness import Secret
from bench.types import Dataset, Key, Method, NotApplicable, Release, Scheme, State, by_blocks, paired
from bench.validation import at_least

ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class RandomLayers(Method):
    """Random layers for each patch location: standard Gaussian map, SELU, LayerNorm.

    Args:
        depth: Layers.
        patch_size: Side of a square patch in pixels; it must divide both sides of the image.
    """

    name: ClassVar[str] = "random-layers"
    source: ClassVar[str] = "the random layers of Yala et al. 2022 (Syfer), section 5, without the learned ones"
    needs_public: ClassVar[bool] = False

    depth: int = 3
    patch_size: int = 16

    def __post_init__(self) -> None:
        at_least(1, depth=self.depth, patch_size=self.patch_size)

    def fit(self, public: Dataset, seed: int) -> RandomLayersScheme:
        """Nothing to learn but the shape of an image.

        Raises NotApplicable for tables, for sides that the patch does not divide, and for patches of a single number
        (which LayerNorm makes zero).
        """
        if public.samples.ndim != 4:
            raise NotApplicable(f"random-layers cuts images into patches: {public.name} is a table")
        c, h, w = public.samples.shape[1:]
        sizes = [size for size in patch_sizes(h, w) if c * size**2 > 1]
        if self.patch_size not in sizes:
            raise NotApplicable(
                f"random-layers needs patches of more than one number that divide the image: {self.patch_size} does "
                f"not do for {c}x{h}x{w}; set patch_size to one of {', '.join(map(str, sizes)) or 'none'}"
            )
        return RandomLayersScheme(self, (c, h, w), public.samples.device)

    def load(self, state: State) -> RandomLayersScheme:
        """The scheme that `RandomLayersScheme.state` described. Raises ValueError if its parameters were others."""
        c, h, w, depth, patch_size = (int(number) for number in state["shape"])
        if (depth, patch_size) != (self.depth, self.patch_size):
            raise ValueError(
                f"the stored scheme has depth {depth} and patch_size {patch_size}, "
                f"this method has {self.depth} and {self.patch_size}"
            )
        return RandomLayersScheme(self, (c, h, w), state["shape"].device)


@dataclass(frozen=True)
class RandomLayersScheme(Scheme):
    """Images of `shape` (c, h, w) under `method`; keys on `device`."""

    method: RandomLayers
    shape: tuple[int, int, int]
    device: torch.device

    def sample_key(self, secret: Secret) -> RandomLayersKey:
        """Fresh weights."""
        c, h, w = self.shape
        down, across = patch_grid(h, w, self.method.patch_size)
        numbers = c * self.method.patch_size**2
        draw = secret.stream("random-layers").normal
        layers = obfuscator.draw_layers(
            draw, locations=down * across, inputs=numbers, width=numbers, layers=self.method.depth
        )
        return RandomLayersKey(self, torch.stack(layers).to(self.device))

    def load_key(self, state: State) -> RandomLayersKey:
        """The key that `RandomLayersKey.state` described."""
        return RandomLayersKey(self, state["weights"])

    def state(self) -> State:
        """Channels, height, width, depth and patch size, int64."""
        numbers = (*self.shape, self.method.depth, self.method.patch_size)
        return {"shape": torch.tensor(numbers, device=self.device)}


@dataclass(frozen=True, eq=False)
class RandomLayersKey(Key):
    """`weights` (depth, locations, q + 1, q) float32, a map's bias last."""

    scheme: RandomLayersScheme
    weights: torch.Tensor

    def release(self, private: Dataset) -> Release:
        """Encoded images (n, c, h, w) with the labels as they are."""
        return paired(self.query(private.samples), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Images encoded as in the release. Raises ValueError for other shapes."""
        shape, patch_size = self.scheme.shape, self.scheme.method.patch_size
        if tuple(samples.shape[1:]) != shape:
            raise ValueError(f"this key encodes images of shape {shape}, got {tuple(samples.shape[1:])}")
        layers = list(self.weights)

        def encode(part: torch.Tensor) -> torch.Tensor:
            return fold(obfuscator.random_layers(cut(part, patch_size), layers), shape, patch_size)

        return by_blocks(samples, encode, ROWS_AT_ONCE)

    def state(self) -> State:
        """The weights."""
        return {"weights": self.weights}
