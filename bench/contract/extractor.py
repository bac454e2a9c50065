"""What a feature extractor is: it learns from public images, or loads weights, then turns images into vectors."""

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
    """A fitted extractor. `batch` is how many rows it is handed at a time (see `batches`)."""

    batch: int = 256

    @abstractmethod
    def embed(self, samples: torch.Tensor) -> torch.Tensor:
        """Images (n, c, h, w) float32 in [0, 1] as vectors (n, d) float32, on the device of the images.

        A row's vector depends on that row alone. Released images may leave [0, 1].

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

    `confidential` names parameters that are paths and never enter a record. `cached` is False where a vector is made
    as fast as it is read back from disk. `packages` are those, beside torch, in whose code the vectors are made: with
    another version of one, they are made again.
    """

    confidential: ClassVar[frozenset[str]] = frozenset()
    cached: ClassVar[bool] = True
    packages: ClassVar[tuple[str, ...]] = ()

    @property
    def side(self) -> int | None:
        """The side in pixels that it reads, which images are prepared at; None: it reads them at any.

        An extractor that names one learns nothing: its `fit` is given a single public image, or none.
        """
        return None

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


def batches(embedding: Embedding, samples: torch.Tensor, *, who: str, device: torch.device) -> Iterator[torch.Tensor]:
    """The vectors of the rows (n, ...), a batch at a time on `device`, with progress.

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
    """The shape (c, h, w) of the images. Raises NotApplicable for rows that are none."""
    if public.samples.ndim != 4:
        raise NotApplicable(f"{who} reads images, and the rows of {public.name} are vectors already")
    _, c, h, w = public.samples.shape
    return c, h, w


def check_shape(samples: torch.Tensor, shape: tuple[int, ...], who: str) -> None:
    """Raise NotApplicable unless every row has that shape."""
    if tuple(samples.shape[1:]) != shape:
        raise NotApplicable(f"{who} reads rows of shape {shape}, and these have {tuple(samples.shape[1:])}")
