"""Methods, keys and noise of a few lines, for tests whose point lies elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from bench.randomness import Secret, Stream
from bench.types import Dataset, Key, Method, Release, Scheme, State


@dataclass(frozen=True)
class KeyedScheme(Scheme):
    """Every key is a new instance of one class."""

    key: type[Key]

    def sample_key(self, secret: Secret) -> Key:
        return self.key()

    def load_key(self, state: State) -> Key:
        return self.key()


@dataclass(frozen=True)
class Keyed(Method):
    """Hands out keys of the class that `key` names, one of `keys`."""

    name: ClassVar[str] = "made"
    source: ClassVar[str] = "nowhere"
    keys: ClassVar[tuple[type[Key], ...]]
    scheme: ClassVar[type[KeyedScheme]] = KeyedScheme
    key: str

    def fit(self, public: Dataset, seed: int) -> Scheme:
        return self.load({})

    def load(self, state: State) -> Scheme:
        return self.scheme(next(key for key in self.keys if key.__name__ == self.key))


class Keyless(Scheme, Key):
    """Holds no secret; a test adds `release`."""

    def sample_key(self, secret: Secret) -> Key:
        return self

    def load_key(self, state: State) -> Key:
        return self

    def state(self) -> State:
        return {}


class Unlinked(Keyless):
    """Releases the rows and does not say where each went."""

    def release(self, private: Dataset) -> Release:
        return Release(private.samples, None, None)


def toy_seed(secret: Secret) -> int:
    """31 bits of a secret."""
    return int(secret.stream("toy").integers(1 << 31))


def laplace(shape: torch.Size | tuple[int, ...], stream: Stream) -> Tensor:
    """Independent Laplace numbers of scale 1, float32: the difference of two exponential numbers."""
    return (stream.exponential(*shape) - stream.exponential(*shape)).float()


def laplace_distance(numbers: np.ndarray, scale: float = 1.0) -> float:
    """Kolmogorov's distance between numbers (n,) and the Laplace distribution about 0 of that scale."""
    numbers = np.sort(numbers)
    cdf = np.where(numbers < 0, 0.5 * np.exp(numbers / scale), 1 - 0.5 * np.exp(-numbers / scale))
    steps = np.arange(len(numbers) + 1) / len(numbers)
    return float(max(np.abs(cdf - steps[1:]).max(), np.abs(cdf - steps[:-1]).max()))
