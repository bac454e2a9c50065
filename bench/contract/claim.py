"""A differential-privacy claim as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
    """

    unit: Literal["image", "pixel", "record"]
    epsilon: float
    delta: float
    assumptions: str
    basis: str
    derived: float | None = None

    def __post_init__(self) -> None:
        for what, bound in (("epsilon", self.epsilon), ("derived", self.derived)):
            if bound is not None and not bound > 0:
                raise ValueError(f"{what} must be positive, got {bound}")
        if not 0 <= self.delta <= 1:
            raise ValueError(f"delta must be in [0, 1], got {self.delta}")
