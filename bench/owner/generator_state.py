"""State of a published generator: checks, and classes of labels."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Self

import torch

from bench.randomness import Stream
from bench.rows.grouping import label_classes
from bench.types import State
from bench.validation import at_least


def check_names(state: State, names: Set[str]) -> None:
    """Raise ValueError unless `state` has exactly those tensors."""
    if missing := sorted(names - state.keys()):
        raise ValueError(f"a generator's state needs {', '.join(missing)}: got {', '.join(sorted(state)) or 'nothing'}")
    if unknown := sorted(state.keys() - names):
        raise ValueError(f"a generator's state holds {', '.join(unknown)}: expected only {', '.join(sorted(names))}")


def check_tensors(
    state: State, shapes: Mapping[str, tuple[int, ...]], *, dtype: torch.dtype | None = None, finite: bool = True
) -> None:
    """Raise ValueError unless tensors have their shape, `dtype`, and finite numbers.

    `dtype` None stands for float32.
    """
    dtype = dtype or torch.float32
    for name, shape in shapes.items():
        tensor = state[name]
        if tuple(tensor.shape) != shape or tensor.dtype != dtype:
            raise ValueError(f"{name} must be {dtype} of shape {shape}, got {tensor.dtype} {tuple(tensor.shape)}")
        bad = int((~tensor.isfinite()).sum())
        if finite and bad:
            raise ValueError(f"{name} must be finite: {bad} of its {tensor.numel()} numbers are not")


@dataclass(frozen=True, eq=False)
class LabelMix:
    """Classes with their proportions.

    Args:
        classes: (c, k) float32, the labels of a row of each class: in [0, 1], or NaN; k = 0 if there are no labels.
        proportions: (c,) float64, sum 1.

    Raises:
        ValueError: Proportions that are none, or classes with a label that is neither NaN nor in [0, 1].
    """

    classes: torch.Tensor
    proportions: torch.Tensor

    def __post_init__(self) -> None:
        if not (bool((self.proportions >= 0).all()) and abs(float(self.proportions.sum()) - 1) < 1e-6):
            raise ValueError(f"proportions must be at least 0 with sum 1, got {self.proportions.tolist()}")
        if not bool((self.classes.isnan() | ((self.classes >= 0) & (self.classes <= 1))).all()):
            raise ValueError(f"labels of classes must be NaN or in [0, 1], got {self.classes.tolist()}")

    @classmethod
    def of(cls, labels: torch.Tensor | None, samples: torch.Tensor) -> tuple[Self, torch.Tensor]:
        """The mix of labels (n, k), and each row's class (n,) int64.

        Both are on the device of the samples (n, ...).
        """
        number, classes = (part.to(samples.device) for part in label_classes(labels, len(samples)))
        counts = torch.bincount(number, minlength=len(classes))
        return cls(classes.to(torch.float32), counts.to(torch.float64) / len(samples)), number

    @classmethod
    def load(cls, state: State) -> Self:
        """The mix in a generator's `state`. Raises ValueError for invalid tensors."""
        c, k, *_ = (*state["classes"].shape, 0, 0)
        check_tensors(state, {"classes": (c, k)}, finite=False)
        check_tensors(state, {"proportions": (c,)}, dtype=torch.float64)
        return cls(state["classes"], state["proportions"])

    def draw(self, count: int, stream: Stream) -> torch.Tensor:
        """Random classes (count,) int64. Raises ValueError for a count below 1."""
        at_least(1, count=count)
        steps = self.proportions.cpu().cumsum(dim=0)
        drawn = torch.searchsorted(steps, stream.uniform(count) * steps[-1], right=True)
        return drawn.to(self.classes.device)

    def labels(self, number: torch.Tensor) -> torch.Tensor | None:
        """Labels (m, k) of rows of classes (m,); None without labels."""
        return self.classes[number] if self.classes.shape[1] else None

    def state(self) -> State:
        """Both tensors by name."""
        return {"classes": self.classes, "proportions": self.proportions}
