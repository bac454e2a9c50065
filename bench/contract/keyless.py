"""A method that only transforms rows: without training, without secrets."""

from __future__ import annotations

__figures__ = True

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch

from bench.contract.dataset import Dataset, Release, paired
from bench.contract.method import Key, Method, Scheme
from bench.contract.plugin import State
from bench.randomness import Secret


class Keyless(Method):
    """A method without training and keys: a plug-in writes `transform` alone.

    Labels are released as they are. A plug-in that cannot take all rows extends `fit`, which raises NotApplicable.
    """

    needs_public: ClassVar[bool] = False

    @abstractmethod
    def transform(self, samples: torch.Tensor) -> torch.Tensor:
        """Released rows (n, ...) of rows (n, ...), in order.

        New rows reach Bob's model in the same way.
        """

    def fit(self, public: Dataset, seed: int) -> KeylessScheme:
        """A scheme without state. Raises NotApplicable for rows that cannot be transformed."""
        return KeylessScheme(self)

    def load(self, state: State) -> KeylessScheme:
        """The scheme, which has no state."""
        return KeylessScheme(self)


@dataclass(frozen=True)
class KeylessScheme(Scheme):
    """The scheme of a method that learns nothing."""

    method: Keyless

    def sample_key(self, secret: Secret) -> KeylessKey:
        """The key, the same for every secret."""
        return KeylessKey(self.method)

    def load_key(self, state: State) -> KeylessKey:
        """The key, which has no state."""
        return KeylessKey(self.method)


@dataclass(frozen=True)
class KeylessKey(Key):
    """A key without a secret."""

    method: Keyless

    def release(self, private: Dataset) -> Release:
        """Transformed rows, labels as they are."""
        return paired(self.query(private.samples), private.labels)

    def query(self, samples: torch.Tensor) -> torch.Tensor:
        """Transformed rows."""
        return self.method.transform(samples)

    def state(self) -> State:
        """Empty: nothing is secret."""
        return {}
