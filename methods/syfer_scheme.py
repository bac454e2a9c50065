"""A fitted Syfer: public network; keys of random layers and label codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from bench.nets import obfuscator
from bench.nets.patches import SHRUNK
from bench.owner.label_code import LabelCode, Unbalanced
from bench.randomness import Secret
from bench.types import CAVEAT, Dataset, Key, Release, Scheme, State, by_blocks, paired

ROWS = 256


@dataclass(frozen=True, eq=False)
class SyferScheme(Scheme):
    """A network for images of `shape` (c, h, w), with label rules.

    The rules depend on `exclusive`. `ratio`: numbers of a patch over those of its token; above 1 some are lost before
    anything is hidden.
    """

    network: obfuscator.Obfuscator
    shape: tuple[int, int, int]
    exclusive: bool
    labels: Literal["encoded", "raw"]
    unbalanced: Unbalanced
    ratio: float
    caveat: str

    def notes(self) -> Mapping[str, int | float | str]:
        """Numbers of a patch per number of token; a caveat on size."""
        return {CAVEAT: self.caveat, SHRUNK: round(self.ratio, 4)}

    def sample_key(self, secret: Secret) -> SyferKey:
        """Fresh random layers and a fresh label code."""
        device = next(self.network.parameters()).device
        layers = [layer.to(device) for layer in self.network.draw(secret.stream("layers").normal)]
        return self._key(layers, secret.derive("labels"))

    def load_key(self, state: State) -> SyferKey:
        """The key that `SyferKey.state` described."""
        layers = [state[f"layer-{number}"] for number in range(len(state) - 1)]
        return self._key(layers, Secret.load(state["label-secret"]))

    def state(self) -> State:
        """The network's weights, and its sizes, int64."""
        network = self.network
        numbers = (*self.shape, network.patch_size, network.width, len(network.stacks), network.depth, self.exclusive)
        weights = {name: tensor.detach() for name, tensor in network.state_dict().items()}
        return {**weights, "sizes": torch.tensor(numbers, device=next(network.parameters()).device)}

    def _key(self, layers: list[torch.Tensor], labels: Secret) -> SyferKey:
        return SyferKey(self, tuple(layers), LabelCode(labels, self.exclusive, self.unbalanced))


@dataclass(frozen=True, eq=False)
class SyferKey(Key):
    """The random layers and the label code (unused for raw labels).

    A layer is (locations, width + 1, width) float32.
    """

    scheme: SyferScheme
    layers: tuple[torch.Tensor, ...]
    code: LabelCode

    def release(self, private: Dataset) -> Release:
        """Encoded images (n, 1, h', w'), labels. Raises NotApplicable for unencodable labels."""
        labels = private.labels if self.scheme.labels == "raw" else self.code.encode(private)
        return paired(self.query(private.samples), labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Images encoded as in the release. Raises ValueError for other shapes."""
        if tuple(samples.shape[1:]) != self.scheme.shape:
            raise ValueError(f"this key encodes images of shape {self.scheme.shape}, got {tuple(samples.shape[1:])}")
        with torch.no_grad():
            return by_blocks(samples, lambda rows: self.scheme.network(rows, self.layers), ROWS)

    def decode(self, scores: torch.Tensor) -> torch.Tensor:
        """Predictions (n, k) in [0, 1] for the real labels."""
        return scores if self.scheme.labels == "raw" else self.code.decode(scores)

    def state(self) -> State:
        """The layers by number, and the label code's secret, uint8 (32,)."""
        layers = {f"layer-{number}": layer for number, layer in enumerate(self.layers)}
        return {**layers, "label-secret": self.code.secret.tensor()}
