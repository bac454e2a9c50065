"""What a feature extractor is: it learns from public images, or loads weights, then turns images into vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from bench.types import Dataset, Plugin, State


class Embedding(ABC):
    """A fitted extractor."""

    @abstractmethod
    def embed(self, samples: Tensor) -> Tensor:
        """Images (n, c, h, w) float32 in [0, 1] as vectors (n, d) float32, on the device of the images.

        A row's vector depends on that row alone. Large inputs are read in batches, with progress.

        Raises:
            NotApplicable: Rows of another shape than it reads.
        """

    @abstractmethod
    def state(self) -> State:
        """What was learned from public images, as tensors; empty for weights from outside (see `Extractor.stamp`)."""

    def notes(self) -> Mapping[str, int | float | str]:
        """What a record should say of it (explained variance, where the weights come from). Default: nothing."""
        return {}


class Extractor(Plugin):
    """A feature extractor: a frozen dataclass whose fields are its parameters.

    `confidential` names parameters that never enter a record (paths).
    """

    confidential: ClassVar[frozenset[str]] = frozenset()

    def stamp(self) -> str:
        """What the vectors depend on beyond parameters and public images: a hash of the weights. Default: nothing.

        Raises:
            DataError: The weights cannot be had; the text says where they were looked for and what to do.
        """
        return ""

    @abstractmethod
    def fit(self, public: Dataset, seed: int) -> Embedding:
        """Learn from public images, or load weights. Raises NotApplicable for rows it cannot read (tables)."""

    @abstractmethod
    def load(self, state: State) -> Embedding:
        """The embedding that `Embedding.state` described, on the device of its tensors."""
