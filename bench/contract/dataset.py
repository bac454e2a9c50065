"""Rows of one kind with their labels and the people they show."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from bench.memory.rows import rows_at


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of one kind with their labels and the people they show.

    Args:
        name: Where the rows come from, for messages and records.
        samples: Images (n, c, h, w), float32 in [0, 1]; or a table (n, d), float32. `bench.memory.rows.Rows` where
            there are more than fit: use them as any tensor, some at a time.
        labels: (n, k) float32: 1 yes, 0 no, between them for mixed rows, NaN unknown or withheld. None where hidden.
        subjects: (n,) int64, one number a person. None where nobody knows.
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
