"""Noise: every released row is pure noise, whatever the private row. The reference row for full privacy.

The labels are released in random order and belong to nothing: Bob, who trains a model on the release, can learn only
how frequent each label is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bench.owner.noise_stream import content_seed
from bench.seeds import derive, generator
from bench.types import Dataset, Key, Method, Release, Role, Scheme, State, paired


@dataclass(frozen=True)
class Noise(Method):
    """Nothing is kept: no attack may do better than chance, nor may Bob."""

    name: ClassVar[str] = "noise"
    role: ClassVar[Role | None] = "keeps nothing"
    source: ClassVar[str] = "reference row: standard Gaussian noise"

    def fit(self, public: Dataset, seed: int) -> NoiseScheme:
        """Nothing to learn."""
        return NoiseScheme()

    def load(self, state: State) -> NoiseScheme:
        """The scheme, which has no state."""
        return NoiseScheme()


class NoiseScheme(Scheme):
    """Draws seeds."""

    def sample_key(self, seed: int) -> NoiseKey:
        """A key with a noise stream of its own."""
        return NoiseKey(derive(seed, "noise-key"))

    def load_key(self, state: State) -> NoiseKey:
        """The key that `NoiseKey.state` described."""
        return NoiseKey(int(state["seed"]))


@dataclass(frozen=True)
class NoiseKey(Key):
    """The seed of a noise stream."""

    seed: int

    def release(self, private: Dataset) -> Release:
        """N(0, 1) rows of the same shape with the labels shuffled: of the private rows only shape and labels count."""
        stream = generator(derive(self.seed, "release"), private.samples.device)
        samples = torch.randn(private.samples.shape, generator=stream, device=private.samples.device)
        order = torch.randperm(len(samples), generator=generator(derive(self.seed, "labels"))).to(samples.device)
        return paired(samples, None if private.labels is None else private.labels[order])

    def query(self, samples: Tensor, labels: Tensor | None = None) -> Tensor:
        """N(0, 1) rows of the same shape, from another stream than the release.

        The rows only choose the stream (through a keyed hash), so that two calls do not return the same noise.
        """
        stream = generator(content_seed(self.seed, "query", samples), samples.device)
        return torch.randn(samples.shape, generator=stream, device=samples.device)

    def state(self) -> State:
        """The seed, a single int64."""
        return {"seed": torch.tensor(self.seed, dtype=torch.int64)}
