"""Among how many raw rows each one hides."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, eq=False)
class AnonymityEvidence:
    """Among how many raw rows each one hides.

    Args:
        single: (n,) int64: how many raw rows share the released form of row i, itself included.
        intersected: The same among the rows that share its form in a second release too, made of the same rows with
            other people joining and leaving.
        subjects: (n,) int64 or None.
        seed: For the bootstrap.
    """

    single: torch.Tensor
    intersected: torch.Tensor
    subjects: torch.Tensor | None
    seed: int
