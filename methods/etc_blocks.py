"""EtC blocks: block-wise encryption of images for vision transformers.

Blocks change places; each is turned and mirrored, negated, and its colours change places. Sources: Chuman and Kiya,
Security Evaluation of Block-based Image Encryption for Vision Transformer against Jigsaw Puzzle Solver Attack (2022,
arXiv 2202.00806), and A Jigsaw Puzzle Solver-Based Attack on Image Encryption Using Vision Transformer (Information
14(6):311, 2023), whose section 2.2 lists the steps of encryption-then-compression (EtC) images, as Kiya's group names
them; Kiya, Iijima and Nagamori, Block-Wise Encryption for Reliable Vision Transformer Models (2023, arXiv 2308.07612),
for pixels shuffled within blocks. A transformer that learns an embedding of patches and of their places can undo both
permutations by other weights, which is why its accuracy need not suffer.

The steps, for blocks of M x M pixels, in this order: (1) the blocks are permuted; (2) each is rotated by a multiple of
90 degrees and mirrored; (3) the negative-positive transformation (equation 1 of 2023): q' = q if the block's bit is 0,
else 255 - q, of pixels that are whole numbers; (4) the colour channels of each block are permuted. An option, of the
group's other schemes: (5) the numbers of a block are permuted, in all blocks alike. The key space is that of these
steps, n! 8^n 2^n (c!)^n for n blocks of c channels, and (c M^2)! for the last; `bench info` of a fitted scheme notes
its logarithm. It bounds a search through all keys, and no other attack.

With `keys="one"` a key encrypts all images alike, as the classification papers have it: their transformers learn one
arrangement, and query images come under the same key. With "per-image" each image has a key of its own, drawn from the
secret, as EtC images have that are only stored or sent.

Differences:
- The authors draw a rotation of four and a mirroring; here it is one of the eight results, all of them equally likely.
- Pixels are whole numbers up to 255, as the authors'; images of more levels are rounded. So a negative is exact, and no
  low digits tell negated blocks from others. No JPEG compression follows.
- Blocks of 16 pixels fit the authors' transformer for 224 or 384 pixels a side, 196 or 576 of them; 64 pixels have 16.
- Bob's networks are the benchmark's own and start untrained; the authors fine-tune a large transformer.
- Labels are released as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from bench.nets.patches import cut, fold, patch_grid, patched_shape
from bench.owner.secret_key import SecretKey, SecretScheme
from bench.randomness import Stream
from bench.types import Dataset, Method, NotApplicable, Release, State, by_blocks, paired
from bench.validation import at_least, one_of

WHITE = 255
TURNS = 8  # the symmetries of a square
ROWS = 128


@dataclass(frozen=True)
class EtCBlocks(Method):
    """Blocks of pixels permuted, turned and negated under a secret key.

    Args:
        patch_size: Side M of a square block in pixels; it must divide both sides of the image.
        scramble: Permute the blocks of an image.
        turn: Rotate and mirror each block.
        negate: Negative-positive transformation: each block becomes its negative with probability 1/2.
        shuffle_channels: Permute the channels of each block; nothing happens to grey images.
        shuffle_pixels: Permute all numbers of a block, in the same way in every block.
        keys: One key for all images, as in the classification papers; or another one for each image.
    """

    name: ClassVar[str] = "etc-blocks"
    source: ClassVar[str] = "Chuman and Kiya 2022, 2023 (EtC images for vision transformers); Kiya et al. 2023"
    needs_public: ClassVar[bool] = False
    sides: ClassVar[Mapping[str, int]] = {"paper": 224}

    patch_size: int = 16
    scramble: bool = True
    turn: bool = True
    negate: bool = True
    shuffle_channels: bool = True
    shuffle_pixels: bool = False
    keys: Literal["one", "per-image"] = "one"

    def __post_init__(self) -> None:
        at_least(1, patch_size=self.patch_size)
        one_of(("one", "per-image"), keys=self.keys)
        if not any(self.numbers[1:6]):
            raise ValueError(
                "at least one of scramble, turn, negate, shuffle_channels and shuffle_pixels must be true: images "
                "would be released as they are (that is the method identity)"
            )

    @property
    def numbers(self) -> tuple[int, ...]:
        """The parameters as numbers, in their order."""
        steps = (self.scramble, self.turn, self.negate, self.shuffle_channels, self.shuffle_pixels)
        return self.patch_size, *map(int, steps), int(self.keys == "per-image")

    def fit(self, public: Dataset, seed: int) -> EtCBlocksScheme:
        """Nothing to learn but the shape of an image.

        Raises NotApplicable for tables, for sides that the block does not divide, and if nothing would be hidden.
        """
        shape = patched_shape(self.name, public, self.patch_size)
        if shape[0] == 1 and not any((self.scramble, self.turn, self.negate, self.shuffle_pixels)):
            raise NotApplicable("etc-blocks would leave grey images as they are: choose a step beside shuffle_channels")
        return EtCBlocksScheme(self, shape, public.samples.device)

    def load(self, state: State) -> EtCBlocksScheme:
        """The scheme that `EtCBlocksScheme.state` described. Raises ValueError if its parameters were others."""
        c, h, w, *numbers = (int(number) for number in state["shape"])
        if tuple(numbers) != self.numbers:
            raise ValueError(
                "the stored scheme has patch_size, its five steps (0 or 1) and keys per image (0 or 1) "
                f"{tuple(numbers)}, this method has {self.numbers}"
            )
        return EtCBlocksScheme(self, (c, h, w), state["shape"].device)


@dataclass(frozen=True, eq=False)
class EtCBlocksKey(SecretKey):
    """A secret: the source of one arrangement or many."""

    scheme: EtCBlocksScheme

    def release(self, private: Dataset) -> Release:
        """Encrypted images with the labels as they are; errors as `query`.

        They are (n, c, h, w), float32, whole 255ths in [0, 1].
        """
        return paired(self._encrypt(private.samples, "release"), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Encrypted images: under the release's key, or each under its own.

        Raises ValueError for images of other shapes.
        """
        return self._encrypt(samples, "query")

    def _encrypt(self, samples: torch.Tensor, call: str) -> torch.Tensor:
        scheme, method = self.scheme, self.scheme.method
        if tuple(samples.shape[1:]) != scheme.shape:
            raise ValueError(f"this key encrypts images of shape {scheme.shape}, got {tuple(samples.shape[1:])}")
        if method.keys == "one":
            one = scheme.draw(self.secret.stream("arrangement"), 1)
            return by_blocks(samples, lambda rows: scheme.encrypt(rows, one), ROWS)
        stream = self.secret.derive(call).bound_to(samples).stream()
        return by_blocks(samples, lambda rows: scheme.encrypt(rows, scheme.draw(stream, len(rows))), ROWS, draws=True)


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Keys of q images, or q = 1 for all.

    Args:
        places: (q, n, c * M^2) int64, of each released number where it stands among the n c M^2 numbers of the image.
        negative: (q, n, 1) bool, the released blocks that are negated.
    """

    places: torch.Tensor
    negative: torch.Tensor


@dataclass(frozen=True)
class EtCBlocksScheme(SecretScheme):
    """Images of `shape` (c, h, w) under `method`."""

    key = EtCBlocksKey
    purpose = "etc-blocks"

    method: EtCBlocks
    shape: tuple[int, int, int]
    device: torch.device

    def state(self) -> State:
        """Channels, height, width and the method's parameters, int64."""
        return {"shape": torch.tensor((*self.shape, *self.method.numbers), device=self.device)}

    def notes(self) -> Mapping[str, int | float | str]:
        """The key space in bits, of an image."""
        method, n, c = self.method, self.blocks, self.shape[0]
        bits = math.lgamma(n + 1) / math.log(2) * method.scramble + n * (math.log2(TURNS) * method.turn + method.negate)
        bits += n * math.log2(math.factorial(c)) * method.shuffle_channels
        bits += math.lgamma(c * method.patch_size**2 + 1) / math.log(2) * method.shuffle_pixels
        return {"bits of a key": round(bits, 1)}

    @property
    def blocks(self) -> int:
        """Blocks n of an image."""
        return math.prod(patch_grid(*self.shape[1:], self.method.patch_size))

    def draw(self, stream: Stream, count: int) -> Arrangement:
        """Keys of `count` images, independent of each other."""
        method, n, c, area = self.method, self.blocks, self.shape[0], self.method.patch_size**2
        places = torch.arange(n * c * area).reshape(1, n, c, area).expand(count, -1, -1, -1)
        negative = torch.zeros(count, n, dtype=torch.bool)
        if method.scramble:
            order = stream.uniform(count, n).argsort(dim=1)
            places = places.take_along_dim(order[:, :, None, None], dim=1)
        if method.turn:
            turned = _turned(method.patch_size)[stream.integers(TURNS, count, n)]
            places = places.take_along_dim(turned[:, :, None, :], dim=3)
        if method.negate:
            negative = stream.integers(2, count, n) == 1
        if method.shuffle_channels:
            order = stream.uniform(count, n, c).argsort(dim=2)
            places = places.take_along_dim(order[:, :, :, None], dim=2)
        places = places.flatten(2)
        if method.shuffle_pixels:
            order = stream.uniform(count, c * area).argsort(dim=1)
            places = places.take_along_dim(order[:, None, :], dim=2)
        return Arrangement(places, negative[:, :, None])

    def encrypt(self, samples: torch.Tensor, key: Arrangement) -> torch.Tensor:
        """Images (b, c, h, w) under b keys or one."""
        size = self.method.patch_size
        numbers = cut((samples.clamp(0, 1) * WHITE).round(), size)
        places, negative = key.places.to(samples.device), key.negative.to(samples.device)
        if len(places) == 1:
            blocks = numbers.flatten(1)[:, places[0].flatten()].reshape(numbers.shape)
        else:
            blocks = numbers.flatten(1).take_along_dim(places.flatten(1), dim=1).reshape(numbers.shape)
        return fold(torch.where(negative, WHITE - blocks, blocks) / WHITE, self.shape, size)


def _turned(side: int) -> torch.Tensor:
    """(8, side^2) int64: a square's pixels under its rotations and their mirrors."""
    square = torch.arange(side**2).reshape(side, side)
    turns = [torch.rot90(square, quarter) for quarter in range(4)]
    return torch.stack([*turns, *(turn.flip(1) for turn in turns)]).flatten(1)
