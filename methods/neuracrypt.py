"""NeuraCrypt: a secret random network over an image's shuffled patches.

It adds a secret vector to each place. Source: Yala et al., NeuraCrypt (2021), and the authors' public code.

Stated by the authors: convolutions with non-overlapping strides, batch normalisation and ReLU; "a random positional
embedding for each patch before the final convolutional and ReLU layers"; patches permuted "independently for each
private sample"; the network is the key; depth 7 in the paper.
Read in their code: one network for all places: map of a patch, ReLU; depth - 3 times map, batch normalisation, ReLU;
N(0, 1) embedding of the place; ReLU; map. Weights and biases are uniform within 1 / root of the inputs (PyTorch's
default). Width 2048, patch 16 on 256 x 256 pixels, pixels standardised. Batch normalisation has no weights of its own
and keeps no running statistics: an encoding depends on the images that happen to share its batch (of 128), at release
and at query.

Differences:
- The width is a multiple of the patch's area and the released set of patch vectors is folded into an image of that many
  channels, so that the networks of Bob, who trains on the release, and the attacks that cut images into patches meet
  one vector a patch. By default it is as many numbers as the patch has, of colour images too; 2048 (`channels` 8) in
  the preset `paper`.
- `statistics` may be "fixed": mean and variance of each layer under this key on public images. Then an encoding depends
  on its image and the key alone, and a single image can be encoded. This is not in the paper.
- Images are standardised by the public set's mean and deviation.
- With "batch" the rows are cut in order into batches of equal size, none smaller than `batch` (unless all are fewer).
- The same rows are shuffled in the same way again; the authors' code draws anew at each pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.nets.patches import SHRUNK, cut, fold, patch_grid, patched_shape
from bench.randomness import Secret, Stream
from bench.seeds import derive, generator
from bench.types import Dataset, Key, Method, NotApplicable, Parameter, Release, Scheme, State, by_even_blocks, paired
from bench.validation import at_least, one_of

FEWEST_LAYERS = 3  # the first map, the embedding of the place and the last map, as the authors count
SMALLEST_VARIANCE = 1e-5


@dataclass(frozen=True)
class NeuraCrypt(Method):
    """A random patch network as the key, shuffled patches as the release.

    Args:
        depth: Layers as the authors count them: first map, depth - 3 hidden maps, embedding of the place, last map.
        patch_size: Side of a square patch in pixels; it must divide both sides of the image.
        channels: Of a released image; the network is channels * patch_size^2 numbers wide. None: those of the images.
        statistics: Of the batch normalisation: "batch" as published, "fixed" by the key on public images.
        batch: Images that share statistics; with "fixed", public images that they are taken from.
    """

    name: ClassVar[str] = "neuracrypt"
    source: ClassVar[str] = "Yala et al. 2021 (NeuraCrypt), and the authors' code"
    presets: ClassVar[Mapping[str, Mapping[str, Parameter]]] = {"paper": {"channels": 8}}
    sides: ClassVar[Mapping[str, int]] = {"paper": 256}

    depth: int = 7
    patch_size: int = 16
    channels: int | None = None
    statistics: Literal["batch", "fixed"] = "batch"
    batch: int = 128

    def __post_init__(self) -> None:
        at_least(FEWEST_LAYERS, depth=self.depth)
        at_least(1, patch_size=self.patch_size, channels=self.channels)
        at_least(2, batch=self.batch)
        one_of(("batch", "fixed"), statistics=self.statistics)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The parameters as numbers; `channels` is 0 for the images' own."""
        return self.depth, self.patch_size, self.channels or 0, int(self.statistics == "fixed"), self.batch

    def fit(self, public: Dataset, seed: int) -> NeuraCryptScheme:
        """Mean and deviation of the public images, and perhaps a batch.

        The batch is kept if statistics are fixed. Raises NotApplicable for tables, for sides that the patch does not
        divide, for images that are all the same.
        """
        samples, sides = public.samples, patched_shape(self.name, public, self.patch_size)
        std, mean = torch.std_mean(samples.double(), dim=(0, 2, 3), correction=0)
        if not bool((std > 0).any()):
            raise NotApplicable(f"neuracrypt standardises by the public images: those of {public.name} do not vary")
        rows = torch.randperm(len(samples), generator=generator(derive(seed, "reference")))[: self.batch]
        shape = torch.tensor((*sides, *self.numbers), device=samples.device)
        state = {"shape": shape, "mean": mean, "std": torch.where(std > 0, std, 1)}
        if self.statistics == "fixed":
            state["reference"] = samples[rows.to(samples.device)]
        return self.load(state)

    def load(self, state: State) -> NeuraCryptScheme:
        """The scheme that `NeuraCryptScheme.state` described. Raises ValueError if its parameters were others."""
        c, h, w, *numbers = (int(number) for number in state["shape"])
        if tuple(numbers) != self.numbers:
            raise ValueError(
                f"the stored scheme has depth, patch_size, channels, fixed statistics (0 or 1) and batch "
                f"{tuple(numbers)}, this method has {self.numbers}"
            )
        return NeuraCryptScheme(self, (c, h, w), dict(state))


@dataclass(frozen=True, eq=False)
class NeuraCryptScheme(Scheme):
    """Images of `shape` (c, h, w) under `method`.

    `learned`: `mean` and `std` (c,) float64; `reference` (r, c, h, w), public images, if statistics are fixed.
    """

    method: NeuraCrypt
    shape: tuple[int, int, int]
    learned: State

    def notes(self) -> Mapping[str, int | float | str]:
        """Numbers of a patch per number released; above 1 some are lost."""
        return {SHRUNK: round(self.shape[0] / self.channels, 4)}

    @property
    def channels(self) -> int:
        """Of a released image."""
        return self.method.channels or self.shape[0]

    def sample_key(self, secret: Secret) -> NeuraCryptKey:
        """A fresh network; fixed statistics are those of the public images."""
        method, device = self.method, self.learned["mean"].device
        down, across = patch_grid(*self.shape[1:], method.patch_size)
        inputs, width = self.shape[0] * method.patch_size**2, self.channels * method.patch_size**2
        stream = secret.stream("neuracrypt")
        network = {
            "first": _maps(stream, (inputs + 1, width)),
            "hidden": _maps(stream, (method.depth - FEWEST_LAYERS, width + 1, width)),
            "place": stream.normal(down * across, width).float(),
            "last": _maps(stream, (width + 1, width)),
        }
        network = {name: weights.to(device) for name, weights in network.items()}
        if method.statistics == "fixed":
            network["moments"] = encode(network, self.tokens(self.learned["reference"])).moments
        return self.load_key(network | {"shuffles": secret.derive("neuracrypt-shuffles").tensor()})

    def load_key(self, state: State) -> NeuraCryptKey:
        """The key that `NeuraCryptKey.state` described."""
        return NeuraCryptKey(self, dict(state))

    def state(self) -> State:
        """Shape, parameters (int64), mean, deviation; the batch for fixed statistics."""
        return self.learned

    def tokens(self, samples: torch.Tensor) -> torch.Tensor:
        """Standardised patches (n, locations, c * patch_size^2). Raises ValueError for other shapes."""
        if tuple(samples.shape[1:]) != self.shape:
            raise ValueError(f"this key encodes images of shape {self.shape}, got {tuple(samples.shape[1:])}")
        mean, std = (self.learned[part].to(samples).reshape(-1, 1, 1) for part in ("mean", "std"))
        return cut((samples - mean) / std, self.method.patch_size)


@dataclass(frozen=True, eq=False)
class NeuraCryptKey(Key):
    """`secret`: `encode`'s network (with `moments` if fixed), and the `shuffles`' secret."""

    scheme: NeuraCryptScheme
    secret: State

    def release(self, private: Dataset) -> Release:
        """Encoded images (n, channels, h, w), patches shuffled; errors as `query`."""
        return paired(self._encode(private.samples, "release"), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Encoded images, shuffled anew.

        With statistics "batch" they depend on all `samples` of their batch. Raises ValueError for images of another
        shape, and for a single image with statistics "batch".
        """
        return self._encode(samples, "query")

    def state(self) -> State:
        """The network, its fixed moments if any, and the shuffles' secret."""
        return self.secret

    def _encode(self, samples: torch.Tensor, call: str) -> torch.Tensor:
        method = self.scheme.method
        if method.statistics == "batch" and len(samples) < 2:
            raise NotApplicable(
                f"statistics=batch needs at least 2 images at a time, got {len(samples)}: encode more or use fixed ones"
            )
        shuffles = Secret.load(self.secret["shuffles"]).derive(call).bound_to(samples).stream()

        def shuffled(rows: torch.Tensor) -> torch.Tensor:
            encoded = encode(self.secret, self.scheme.tokens(rows)).tokens
            order = shuffles.uniform(*encoded.shape[:2]).argsort(dim=1).to(rows.device)
            tokens = encoded.take_along_dim(order[:, :, None], dim=1)
            return fold(tokens, (self.scheme.channels, *self.scheme.shape[1:]), method.patch_size)

        return by_even_blocks(samples, shuffled, max(1, len(samples) // method.batch))


@dataclass(frozen=True, eq=False)
class Encoded:
    """Encoded `tokens` (b, t, width), normalised by `moments` (hidden layers, 2, width)."""

    tokens: torch.Tensor
    moments: torch.Tensor


def encode(network: State, tokens: torch.Tensor) -> Encoded:
    """Tokens (b, t, inputs) through a network.

    Without `moments` of its own it takes those of these tokens.

    Args:
        network: `first` (inputs + 1, width), `hidden` (hidden layers, width + 1, width), `place` (t, width), `last`
            (width + 1, width), the last row of a map its bias; `moments` (hidden layers, 2, width): mean and variance.
        tokens: One token a place, float32.
    """
    given, taken = network.get("moments"), []
    state = _map(tokens.flatten(0, 1), network["first"]).relu_()
    for layer, weights in enumerate(network["hidden"]):
        state = _map(state, weights)
        mean = state.mean(dim=0) if given is None else given[layer, 0]
        state -= mean
        # A plain mean of squares: several times faster here than torch.var, and as exact after centring.
        var = state.square().mean(dim=0) if given is None else given[layer, 1]
        state = state.mul_((var + SMALLEST_VARIANCE).rsqrt()).relu_()
        taken.append(torch.stack((mean, var)))
    placed = (state.reshape(*tokens.shape[:2], -1) + network["place"]).relu_()
    out = _map(placed.flatten(0, 1), network["last"]).reshape(placed.shape)
    return Encoded(out, torch.stack(taken) if taken else out.new_empty(0, 2, out.shape[2]))


def _map(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return torch.addmm(weights[-1], rows, weights[:-1])


def _maps(stream: Stream, shape: tuple[int, ...]) -> torch.Tensor:
    """Maps (..., inputs + 1, width), uniform within 1 / sqrt(inputs)."""
    bound = 1 / math.sqrt(shape[-2] - 1)
    return ((2 * stream.uniform(*shape) - 1) * bound).float()
