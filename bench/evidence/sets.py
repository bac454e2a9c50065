"""The original rows beside the released ones, as sets."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, eq=False)
class SetEvidence:
    """The original rows beside the released ones, as sets.

    Args:
        original: (n, d) float32.
        released: (m, d) float32 in the same space.
        subjects: (n,) int64 of the original rows, or None.
        released_subjects: (m,) int64 of the released rows where every one has one person behind it, else None.
        seed: For the bootstrap.
        labels, released_labels: (n, k) and (m, k) as in `Release`, in the real classes; None where there are none.
        findings: The k names.
        exclusive: Whether each row has exactly one of the k classes.
    """

    original: torch.Tensor
    released: torch.Tensor
    subjects: torch.Tensor | None
    released_subjects: torch.Tensor | None
    seed: int
    labels: torch.Tensor | None = None
    released_labels: torch.Tensor | None = None
    findings: tuple[str, ...] = ()
    exclusive: bool = False
