"""Coordinates of rows along principal axes that Eve, the attacker, knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch

from bench.eve.channel import axes
from bench.statistics.nearest_rows import standardise
from bench.types import NotApplicable


@dataclass(frozen=True, eq=False)
class PrincipalSpace:
    """Principal components of rows whose columns are scaled to unit deviation.

    Args:
        known: (s, ...) the rows that give means, scales and axes.
        directions: (d, q) float64: orthonormal columns; of unit deviation along each axis if whitened.
    """

    known: torch.Tensor
    directions: torch.Tensor

    @classmethod
    def of(cls, known: torch.Tensor, components: int, *, whiten: bool) -> Self:
        """At most `components` axes of rows `known` (s, ...), beyond rounding.

        Raises NotApplicable for rows that do not vary.
        """
        rows, _ = standardise(known, known)
        directions = axes(rows, components)
        if not directions.shape[1]:
            raise NotApplicable(f"the {len(known)} rows that Eve knows to be outside the release do not vary: no axes")
        return cls(known, directions / (rows @ directions).std(dim=0, correction=0) if whiten else directions)

    def coordinates(self, samples: torch.Tensor) -> torch.Tensor:
        """Coordinates (n, q) float64. Raises NotApplicable for rows of another shape."""
        rows: torch.Tensor = standardise(self.known, samples)[1] @ self.directions
        return rows
