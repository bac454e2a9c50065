"""A differential-privacy claim as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.validation import one_of, positive, within

MOST_UNITS = 2**31 - 1


@dataclass(frozen=True)
class PrivacyClaim:
    """A differential-privacy claim as data, so that claimed, derived and measured figures stand side by side.

    Args:
        unit: What one neighbouring change alters.
        epsilon: The bound that the method's authors (paper or code) state; infinity where no finite bound holds.
        delta: The claimed failure probability, in [0, 1].
        assumptions: What must be true for the claim to hold, in one sentence.
        basis: Where the claim comes from (paper and equation, or derivation), and how the derived bound follows.
        derived: The bound that follows from the mechanism as it runs here, with the same delta; infinity where none
            does. None stands for the claimed one.
        neighbours: How neighbours differ: in what one unit holds ("replaced"), or by one unit more or less ("added").
        units: In how many units they differ at most, 1 to `MOST_UNITS`.
    """

    unit: Literal["image", "pixel", "record"]
    epsilon: float
    delta: float
    assumptions: str
    basis: str
    derived: float | None = None
    neighbours: Literal["replaced", "added"] = "replaced"
    units: int = 1

    def __post_init__(self) -> None:
        positive(epsilon=self.epsilon, derived=self.derived)
        within(0, 1, delta=self.delta)
        one_of(("replaced", "added"), neighbours=self.neighbours)
        if not isinstance(self.units, int) or isinstance(self.units, bool):
            raise TypeError(f"units must be a whole number, got {self.units!r}")
        within(1, MOST_UNITS, units=self.units)
