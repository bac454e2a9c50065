"""Noise: every released row is pure noise.

The reference row for full privacy. The labels are released in random order and belong to nothing: Bob, who trains a
model on the release, can learn only how frequent each label is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.owner.secret_key import SecretKey, SecretScheme
from bench.randomness import Stream
from bench.types import Dataset, Method, Release, Role, State, by_blocks, paired

ROWS = 256


@dataclass(frozen=True)
class Noise(Method):
    """A release of noise: attacks and Bob's models must stay at chance."""

    name: ClassVar[str] = "noise"
    role: ClassVar[Role | None] = "keeps nothing"
    source: ClassVar[str] = "reference row: standard Gaussian noise"
    needs_public: ClassVar[bool] = False
    encodes_labels: ClassVar[bool] = True

    def fit(self, public: Dataset, seed: int) -> NoiseScheme:
        """Nothing to learn."""
        return NoiseScheme()

    def load(self, state: State) -> NoiseScheme:
        """The scheme, which has no state."""
        return NoiseScheme()


@dataclass(frozen=True)
class NoiseKey(SecretKey):
    """The secret of noise streams."""

    def release(self, private: Dataset) -> Release:
        """N(0, 1) rows of the private rows' shape, with their labels shuffled."""
        samples = _normal(private.samples, self.secret.stream("release"))
        order = self.secret.stream("labels").permutation(len(samples)).to(samples.device)
        return paired(samples, None if private.labels is None else private.labels[order])

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """N(0, 1) rows of that shape, by another stream than the release.

        The rows only choose the stream (through a keyed hash), so that two calls do not return the same noise.
        """
        return _normal(samples, self.secret.derive("query").bound_to(samples).stream())


class NoiseScheme(SecretScheme):
    """Nothing is public."""

    key = NoiseKey
    purpose = "noise"


def _normal(like: torch.Tensor, stream: Stream) -> torch.Tensor:
    return by_blocks(like, lambda rows: stream.normal(*rows.shape).to(like.device, torch.float32), ROWS, draws=True)
