"""NeuraCrypt by its authors' own code.

Their class `PrivateEncoder` makes the key and every release.

Source: Yala et al., NeuraCrypt (2021), and https://github.com/yala/NeuraCrypt.

The adapter gives the authors' class its options, standardised images in batches, and random numbers; it folds the
vectors of each image's patches into an image, as `methods/neuracrypt.py` does, so that Bob's networks and the attacks
meet rows of the same form.

Differences from the authors' training:
- Images are standardised by the public set's mean and deviation, not by constants of their data sets.
- The set is encoded once, in order, in batches of nearly equal size, none smaller than `batch` (unless all are fewer);
  theirs are shuffled, and the last one is what is left.
- Their generator has a whole state of secret numbers in place of a seed, and the same rows are shuffled in the same way
  again.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from bench.nets.patches import fold, patched_shape
from bench.owner.global_generators import drawn_from
from bench.randomness import Secret
from bench.types import (
    Dataset,
    Key,
    Method,
    NotApplicable,
    Release,
    Scheme,
    State,
    authors_module,
    by_even_blocks,
    paired,
)
from bench.validation import at_least

REPOSITORY = {
    "url": "https://github.com/yala/NeuraCrypt",
    "commit": "6c9862d1076095d76779af03a3a9ffd2cfec748a",
    "licence": "MIT",
    "files": ["LICENSE", "sandstone/"],
    "packages": ["einops==0.8.2", "pytorch-lightning==2.6.1", "remote-pdb==2.1.0"],
    "patches": [
        {
            "file": "sandstone/utils/generic.py",
            "line": 13,
            "before": "from torch._six import container_abcs, string_classes, int_classes",
            "after": "import collections.abc as container_abcs; string_classes, int_classes = (str, bytes), int",
            "why": "torch 2 has no torch._six",
        },
    ],
}
FEWEST_LAYERS = 3  # the first map, the embedding of the place and the last map, as the authors count


@dataclass(frozen=True)
class OfficialNeuraCrypt(Method):
    """NeuraCrypt, run by the authors' own code.

    Args:
        depth: Layers as the paper counts them; their `private_depth` is three fewer.
        patch_size: Side of a square patch in pixels (their `private_kernel_size`); it must divide the image's side.
        channels: Of a released image; their `hidden_dim` is channels * patch_size^2. None: those of the images.
        batch: Images that share the statistics of batch normalisation.
    """

    name: ClassVar[str] = "official-neuracrypt"
    source: ClassVar[str] = "Yala et al. 2021 (NeuraCrypt), run by the authors' code"
    requires: ClassVar[str] = "a checkout of https://github.com/yala/NeuraCrypt"

    depth: int = 7
    patch_size: int = 16
    channels: int | None = None
    batch: int = 128

    def __post_init__(self) -> None:
        at_least(FEWEST_LAYERS, depth=self.depth)
        at_least(1, patch_size=self.patch_size, channels=self.channels)
        at_least(2, batch=self.batch)
        _authors()

    def fit(self, public: Dataset, seed: int) -> OfficialScheme:
        """Mean and deviation of public images.

        Raises NotApplicable for tables and for images that are no square.
        """
        c, h, w = patched_shape(self.name, public, self.patch_size)
        if h != w:
            raise NotApplicable(f"{self.name} takes square images, as the authors' code does, got {h}x{w}")
        std, mean = torch.std_mean(public.samples.double(), dim=(0, 2, 3), correction=0)
        shape = torch.tensor((c, h, w), device=mean.device)
        return self.load({"shape": shape, "mean": mean, "std": torch.where(std > 0, std, 1)})

    def load(self, state: State) -> OfficialScheme:
        """The scheme that `OfficialScheme.state` described."""
        return OfficialScheme(self, dict(state))


@dataclass(frozen=True, eq=False)
class OfficialScheme(Scheme):
    """`learned`: `shape` (c, h, w) int64, `mean` and `std` (c,) float64."""

    method: OfficialNeuraCrypt
    learned: State

    def sample_key(self, secret: Secret) -> OfficialKey:
        """A fresh network of the authors' class."""
        with drawn_from(secret.derive("official-neuracrypt")):
            network = self.encoder().state_dict()
        device = self.learned["mean"].device
        return self.load_key(
            {f"network.{name}": part.to(device) for name, part in network.items()}
            | {"shuffles": secret.derive("official-neuracrypt-shuffles").tensor()}
        )

    def load_key(self, state: State) -> OfficialKey:
        """The key that `OfficialKey.state` described."""
        return OfficialKey(self, dict(state))

    def state(self) -> State:
        """Shape, mean and deviation."""
        return self.learned

    def encoder(self) -> Any:
        """The authors' encoder for these images, with random weights."""
        c, h, w = self.learned["shape"].tolist()
        method = self.method
        width = (method.channels or c) * method.patch_size**2
        options = Namespace(
            num_chan=c, img_size=(h, w), private_kernel_size=method.patch_size, hidden_dim=width,
            private_depth=method.depth - FEWEST_LAYERS, remove_pixel_shuffle=False, load_data_from_encoded_dir=False,
        )  # fmt: skip
        return _authors().PrivateEncoder(options)


@dataclass(frozen=True, eq=False)
class OfficialKey(Key):
    """The authors' network, and the secret of the shuffles.

    `secret` has their parameters under `network.` and their names, and `shuffles`.
    """

    scheme: OfficialScheme
    secret: State

    def release(self, private: Dataset) -> Release:
        """Encoded images (n, channels, h, w), patches shuffled by the authors' code."""
        return paired(self._encode(private.samples, "release"), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Encoded images, shuffled anew; they depend on all images of their batch."""
        return self._encode(samples, "query")

    def state(self) -> State:
        """The network and the secret of the shuffles."""
        return self.secret

    def _encode(self, samples: torch.Tensor, call: str) -> torch.Tensor:
        method, learned = self.scheme.method, self.scheme.learned
        if len(samples) < 2:
            raise NotApplicable(f"{method.name} normalises batches: expected 2 images at least, got {len(samples)}")
        encoder = self.scheme.encoder().to(samples.device)
        encoder.load_state_dict(
            {name.partition(".")[2]: part for name, part in self.secret.items() if name.startswith("network.")}
        )
        mean, std = (learned[part].to(samples).reshape(-1, 1, 1) for part in ("mean", "std"))
        _, h, w = learned["shape"].tolist()

        def encoded(rows: torch.Tensor) -> torch.Tensor:
            tokens = encoder((rows - mean) / std)
            channels = tokens.shape[2] // method.patch_size**2
            return fold(tokens, (channels, h, w), method.patch_size)

        shuffles = Secret.load(self.secret["shuffles"]).derive(call).bound_to(samples)
        with torch.no_grad(), drawn_from(shuffles):
            return by_even_blocks(samples, encoded, max(1, len(samples) // method.batch))


def _authors() -> Any:
    """The authors' module with the encoder."""
    # Their modules import each other in a circle, which begins here.
    authors_module(__file__, "sandstone.models")
    return authors_module(__file__, "sandstone.learn.lightning.private")
