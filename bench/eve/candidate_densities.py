"""Density of released rows at raw rows, by kernels of several widths."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bench.eve.densities import density_in_parts
from bench.rows.grouping import class_groups
from bench.rows.row_sets import drawn
from bench.statistics.nearest_rows import standardise
from bench.types import Dataset, Release

BANDWIDTHS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 8.0)
"""Bandwidths of the kernels, in units of the root mean square distance of two rows."""


@dataclass(frozen=True, eq=False)
class CandidateDensities:
    """Log densities of a release at given rows.

    Narrow kernels read the distance to the nearest released row, wide kernels the distance to the mean of all; over all
    rows, or over those of the row's own class.

    Args:
        rows: The raw rows (n).
        known: Raw rows whose deviations are the units of the columns.
        draws: Rows drawn from a published generator, as a multiple of the released rows.
        seed: Of those draws.
        floor: Columns with a deviation below this share of the largest are left out.
    """

    rows: Dataset
    known: torch.Tensor
    draws: int
    seed: int
    floor: float = 0.0

    def statistics(self, sealed: Release) -> torch.Tensor:
        """(n, 2 len(BANDWIDTHS)) float64: of all released rows, then of same-class rows.

        Raises:
            NotApplicable: Released rows have another shape.
        """
        release = drawn(sealed, self.draws, self.seed)
        _, rows = standardise(self.known, self.rows.samples, floor=self.floor)
        known, released = standardise(self.known, release.samples, floor=self.floor)
        unit = float(2 * known.square().sum(dim=1).mean()) ** 0.5 or 1.0
        parts = []
        for labels in (None, self.rows.labels):
            densities = rows.new_empty(len(rows), len(BANDWIDTHS))
            for own, theirs in class_groups(labels, release.labels, len(rows), len(released)):
                bandwidths = [unit * part for part in BANDWIDTHS]
                densities[own] = density_in_parts(rows, own, released, theirs, bandwidths)
            parts.append(densities)
        return torch.cat(parts, dim=1)


def described(statistic: int) -> dict[str, float | str]:
    """A statistic of `CandidateDensities` in words, for the record."""
    by_class, place = divmod(statistic, len(BANDWIDTHS))
    return {
        "bandwidth": BANDWIDTHS[place],
        "density of": "the candidate's class" if by_class else "all released rows",
    }
