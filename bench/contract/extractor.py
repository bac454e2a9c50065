"""Feature extractors: they turn images into vectors.

They learn from public images, or load weights.
"""

from __future__ import annotations

__figures__ = True

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

import torch

from bench.contract.dataset import Dataset
from bench.contract.plugin import NotApplicable, Plugin, State
from bench.contract.source import DataError
from bench.progress import report


class Embedding(ABC):
    """A fitted extractor that reads `batch` rows at a time."""

    batch: int = 256

    @abstractmethod
    def embed(self, samples: torch.Tensor) -> torch.Tensor:
        """Vectors (n, d), float32, of images (n, c, h, w), [0, 1].

        On the device of the images.

        A row's vector depends on that row alone. Released images may leave [0, 1].

        Raises:
            NotApplicable: Rows of another shape than it reads.
        """

    @abstractmethod
    def state(self) -> State:
        """Tensors learned from public images; empty for loaded weights."""

    def notes(self) -> Mapping[str, int | float | str]:
        """Notes for the record (explained variance, origin of weights). Default: none."""
        return {}


class Extractor(Plugin):
    """A feature extractor: a frozen dataclass whose fields are its parameters.

    `confidential` names parameters that are paths and never enter a record. `cached` is False where a vector is made
    as fast as it is read back from disk. `packages` are those, beside torch, in whose code the vectors are made: with
    another version of one, they are made again.
    """

    confidential: ClassVar[frozenset[str]] = frozenset()
    cached: ClassVar[bool] = True
    packages: ClassVar[tuple[str, ...]] = ()

    @property
    def side(self) -> int | None:
        """Side in pixels of the images it reads; None if any.

        An extractor that names one learns nothing: its `fit` is given a single public image, or none.
        """
        return None

    def stamp(self) -> str:
        """A hash of loaded weights, for content keys. Default: nothing.

        Raises:
            DataError: The weights cannot be had; the text says where they were looked for and what to do.
        """
        return ""

    @abstractmethod
    def fit(self, public: Dataset, seed: int) -> Embedding:
        """Learn from public images, or load weights. Raises NotApplicable for tables."""

    @abstractmethod
    def load(self, state: State) -> Embedding:
        """The embedding that `Embedding.state` described, on the device of its tensors."""


def batches(embedding: Embedding, samples: torch.Tensor, *, who: str, device: torch.device) -> Iterator[torch.Tensor]:
    """The vectors of rows (n, ...), in batches on `device`, with progress.

    Every batch is filled up to one size, so that a row's bits do not depend on how many rows are read with it.

    Raises:
        DataError: Some vectors are not finite; the text names `who` gave them.
    """
    done = 0
    for part in torch.split(samples, embedding.batch):
        full = torch.cat((part, part[:1].expand(embedding.batch - len(part), *part.shape[1:])))
        with torch.no_grad():
            found = embedding.embed(full.to(device))[: len(part)]
        done += len(part)
        if bad := int((~found.isfinite()).any(dim=1).sum()):
            raise DataError(
                f"{who} must give finite vectors: {bad} of the {done} rows read so far hold NaN or infinity. Check its "
                "weights (their type, for half precision overflows) and that the images are finite"
            )
        report("features", done, len(samples))
        yield found


def check_images(public: Dataset, who: str) -> tuple[int, int, int]:
    """The shape (c, h, w) of images. Raises NotApplicable for other rows."""
    if public.samples.ndim != 4:
        raise NotApplicable(f"{who} reads images, and the rows of {public.name} are vectors already")
    _, c, h, w = public.samples.shape
    return c, h, w


def check_shape(samples: torch.Tensor, shape: tuple[int, ...], who: str) -> None:
    """Raise NotApplicable unless every row has that shape."""
    if tuple(samples.shape[1:]) != shape:
        raise NotApplicable(f"{who} reads rows of shape {shape}, and these have {tuple(samples.shape[1:])}")
