"""What a data owner publishes: released rows, or a generator that anybody may draw rows from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

from bench.contract.plugin import State


@dataclass(frozen=True, eq=False)
class Release:
    """What a data owner publishes.

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
    """A trained decoder with the proportions of the labels that it was trained on. Everything in it is public."""

    @abstractmethod
    def sample(self, count: int, seed: int) -> Release:
        """`count` fresh rows with labels in the published proportions, without links; the same seed, the same rows.

        Raises ValueError for a count below 1.
        """

    @abstractmethod
    def state(self) -> State:
        """All that is published, as tensors: `Scheme.load_generator(state)` gives an equal generator."""


def paired(samples: torch.Tensor, labels: torch.Tensor | None) -> Release:
    """A release in which raw row i became released row i."""
    rows = torch.arange(len(samples), device=samples.device)
    return Release(samples, labels, torch.stack((rows, rows), dim=1))
