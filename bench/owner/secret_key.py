"""Keys that are a secret alone, and noise drawn by it.

A key belongs to one scheme. The same key under another scheme (another scale, another code) draws the same numbers for
the same rows: an owner who published both releases would publish their difference, in which the noise cancels. Claims
cover one release.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.randomness import Secret, Stream
from bench.types import Dataset, Key, Release, Scheme, State, paired


@dataclass(frozen=True, eq=False)
class SecretKey(Key):
    """A scheme and the secret of all random numbers, without `release`."""

    scheme: Scheme
    secret: Secret

    def state(self) -> State:
        """The secret, uint8 (32,)."""
        return {"secret": self.secret.tensor()}


def bound(secret: Secret, private: Dataset) -> Secret:
    """A secret for these rows with these labels."""
    secret = secret.bound_to(private.samples)
    return secret if private.labels is None else secret.bound_to(private.labels)


class SecretScheme(Scheme):
    """A scheme with keys of class `key` and secrets derived for `purpose`."""

    key: ClassVar[type[SecretKey]]
    purpose: ClassVar[str]

    def sample_key(self, secret: Secret) -> SecretKey:
        """A key with a secret of its own."""
        return self.key(self, secret.derive(self.purpose))

    def load_key(self, state: State) -> SecretKey:
        """The key that `SecretKey.state` described."""
        return self.key(self, Secret.load(state["secret"]))


@dataclass(frozen=True, eq=False)
class NoiseKey(SecretKey):
    """The key of a method that adds noise to every row.

    The secret, the kind of call and the rows together choose the stream of a call, so that no noise is used twice.
    """

    scheme: NoiseScheme

    def release(self, private: Dataset) -> Release:
        """Rows with noise. Equal rows repeat it; other rows get new noise."""
        return paired(self._call(private.samples, "release"), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Rows with fresh noise, never the release's. Raises ValueError for other shapes."""
        return self._call(samples, "query")

    def _call(self, samples: torch.Tensor, call: str) -> torch.Tensor:
        return self.scheme.blur(samples, self.secret.derive(call).bound_to(samples).stream())


class NoiseScheme(SecretScheme):
    """A scheme that adds noise to every row."""

    key = NoiseKey

    @abstractmethod
    def blur(self, samples: torch.Tensor, stream: Stream) -> torch.Tensor:
        """Released rows of raw rows (n, ...), with noise from the stream."""
