"""A table before and after its release."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, eq=False)
class TableEvidence:
    """A table before and after.

    Args:
        original: (n, d) float32, the private rows.
        released: (m, d) float32, in the same units.
        test: (t, d) float32, raw rows of other people.
        columns: Names of the d columns, as far as they are known; otherwise their numbers.
        seed: For the bootstrap.
    """

    original: torch.Tensor
    released: torch.Tensor
    test: torch.Tensor
    columns: tuple[str, ...]
    seed: int
