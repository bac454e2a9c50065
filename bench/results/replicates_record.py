"""Replicates in record form: small enough to stand in the record itself."""

from __future__ import annotations

import base64
import binascii
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bench.results.part import Part
from bench.types import Replicates

MOST = 100_000
"""Numbers of a table of replicates."""
LARGEST = 1e30
"""Of which differences and squares are still numbers."""
NUMBER = "<f4"


class ReplicatesRecord(Part):
    """A figure by key and on resamples of the people, from which `bench compare` takes differences.

    Args:
        by_key: The figure of each key on all people.
        resampled: The figure of each key (rows) on each resample of the people (columns): a table of 32-bit floats,
            little-endian, in base64. The resamples are the same for every record of the same rows.
        degrees: Degrees of freedom of the spread over resamples.
        people: A hash of the resamples: figures are compared where it is the same.
        scale: Where the figure is nearly normal.
    """

    by_key: list[float] = Field(min_length=1, max_length=MOST)
    resampled: str = Field(max_length=6 * MOST)
    degrees: float = Field(gt=0)
    people: str = Field(pattern="^[0-9a-f]{16}$")
    scale: Literal["plain", "log", "share"]

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        table, keys = self._table(), len(self.by_key)
        if table.size % keys or table.size < 2 * keys:
            raise ValueError(f"resampled must be a table of {keys} rows and at least two columns")
        numbers = np.concatenate((np.asarray(self.by_key), table.astype(np.float64)))
        if not (np.abs(numbers) < LARGEST).all() or (self.scale == "log" and not (numbers > 0).all()):
            raise ValueError(f"figures and their resamples must be below {LARGEST:g}, and above 0 on a log scale")
        return self

    def read(self) -> Replicates:
        """The replicates."""
        table = self._table().astype(np.float64).reshape(len(self.by_key), -1)
        return Replicates(self.by_key, table.tolist(), self.degrees, self.people, self.scale)

    def _table(self) -> np.ndarray:
        try:
            content = base64.b64decode(self.resampled, validate=True)
        except binascii.Error:
            raise ValueError("resampled must be base64") from None
        if len(content) % 4:
            raise ValueError("resampled must hold 32-bit floats")
        return np.frombuffer(content, dtype=NUMBER)


def replicates_record(found: Replicates | None) -> ReplicatesRecord | None:
    """Replicates in record form; None where there are none, or none that could be compared."""
    if found is None or not found.people:
        return None
    table = np.asarray(found.resampled, dtype=NUMBER)
    if table.size > MOST:
        return None
    return ReplicatesRecord(
        by_key=list(found.by_key), resampled=base64.b64encode(table.tobytes()).decode(), degrees=found.degrees,
        people=found.people, scale=found.scale,
    )  # fmt: skip
