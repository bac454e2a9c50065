"""Rows of one kind with their labels and the people they show."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch

from bench.contract.plugin import State
from bench.memory.rows import rows_at


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of one kind with their labels and the people they show.

    Args:
        name: Where the rows come from, for messages and records.
        samples: Images (n, c, h, w), float32 in [0, 1]; or a table (n, d), float32. `bench.memory.rows.Rows` where
            there are more than fit: use them as any tensor, some at a time.
        labels: (n, k) float32: 1 yes, 0 no, between them for mixed rows, NaN unknown or withheld. None where hidden.
        subjects: (n,) int64, one number a person. None if unknown.
        findings: The k names of the label columns.
        exclusive: True when each row has exactly one of the k classes.
        shareable: False for data under a use agreement: no pixel, path or identifier may leave this machine.
    """

    name: str
    samples: torch.Tensor
    labels: torch.Tensor | None
    subjects: torch.Tensor | None
    findings: tuple[str, ...]
    exclusive: bool
    shareable: bool

    def __post_init__(self) -> None:
        for what, part in {"labels": self.labels, "subjects": self.subjects}.items():
            if part is not None and len(part) != len(self.samples):
                raise ValueError(f"{what} must have one row per sample: expected {len(self.samples)}, got {len(part)}")
        if self.labels is not None and self.labels.shape[1:] != (len(self.findings),):
            raise ValueError(f"labels must have {len(self.findings)} columns, got shape {tuple(self.labels.shape)}")

    def __len__(self) -> int:
        return len(self.samples)

    def take(self, rows: torch.Tensor) -> Dataset:
        """The given rows (int64 indices) as a new data set."""
        return replace(
            self,
            samples=rows_at(self.samples, rows),
            labels=None if self.labels is None else self.labels[rows],
            subjects=None if self.subjects is None else self.subjects[rows],
        )

    def nameless(self) -> Dataset:
        """The same rows without the people whom they show."""
        return replace(self, subjects=None)

    def to(self, device: torch.device) -> Dataset:
        """The same data set with its tensors on `device`."""
        return replace(
            self,
            samples=self.samples.to(device),
            labels=None if self.labels is None else self.labels.to(device),
            subjects=None if self.subjects is None else self.subjects.to(device),
        )


@dataclass(frozen=True, eq=False)
class Release:
    """Released rows, with labels and links.

    Args:
        samples: (m, ...) float32: images (m, c, h, w) or vectors (m, d).
        labels: (m, k) float32 as in `Dataset`, encoded if the method encodes labels; None if none are released, which
            labels of no finding (k = 0) become.
        links: (p, 2) int64: raw row, released row. Which person stands where; the harness keeps this from attackers.
            None where no raw row stands in a released row (generative methods).
        primary: (p,) bool beside the links, where several raw rows are mixed into one: the row that the released one
            was made for. None where a released row has no such row, or only one.
        generator: What is published beside the rows, or in their place (then the rows are one draw from it); None where
            nothing is.
    """

    samples: torch.Tensor
    labels: torch.Tensor | None
    links: torch.Tensor | None
    primary: torch.Tensor | None = None
    generator: Generator | None = None

    def __post_init__(self) -> None:
        if isinstance(self.labels, torch.Tensor) and self.labels.ndim == 2 and self.labels.shape[1] == 0:
            object.__setattr__(self, "labels", None)

    def __len__(self) -> int:
        return len(self.samples)


class Generator(ABC):
    """A trained decoder with its labels' proportions; all of it is public."""

    @abstractmethod
    def sample(self, count: int, seed: int) -> Release:
        """`count` fresh rows with labels in the published proportions, without links.

        Equal seeds give equal rows.

        Raises ValueError for a count below 1.
        """

    @abstractmethod
    def state(self) -> State:
        """All that is published, as tensors: `Scheme.load_generator(state)` gives an equal generator."""


def paired(samples: torch.Tensor, labels: torch.Tensor | None) -> Release:
    """A release in which raw row i became released row i."""
    rows = torch.arange(len(samples), device=samples.device)
    return Release(samples, labels, torch.stack((rows, rows), dim=1))
