"""A formal privacy claim in record form."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from bench.contract.claim import MOST_UNITS
from bench.results.part import Part
from bench.types import PrivacyClaim


class ClaimRecord(Part):
    """A formal privacy claim: the stated bound, and the one derived here; null where no finite bound holds.

    Args:
        unit: What one neighbouring change alters.
        epsilon: The bound that the method's authors state.
        derived: The bound that follows from the mechanism as it runs here.
        delta: The failure probability of both.
        assumptions: What must be true for the claim to hold.
        basis: Where the claim comes from, and how the derived bound follows.
        neighbours: How neighbours differ: in what a unit holds, or by one unit more or less.
        units: In how many units they differ at most.
    """

    unit: Literal["image", "pixel", "record"]
    epsilon: Annotated[float, Field(gt=0)] | None
    derived: Annotated[float, Field(gt=0)] | None
    delta: Annotated[float, Field(ge=0, le=1)]
    assumptions: str
    basis: str
    neighbours: Literal["replaced", "added"] = "replaced"
    units: Annotated[int, Field(ge=1, le=MOST_UNITS, strict=True)] = 1

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """As it was read: records from before `units` have no line for it, and keep their digest."""
        content: dict[str, JsonValue] = write(self)
        return {name: value for name, value in content.items() if name != "units" or name in self.model_fields_set}

    @property
    def whole(self) -> bool:
        """Whether the bounds are for a whole row, so that they compare with others."""
        return self.unit in ("image", "record")

    @property
    def per(self) -> str:
        """What the bounds are for: "image", "16 pixels"."""
        return self.unit if self.units == 1 else f"{self.units} {self.unit}s"


def claim_record(claim: PrivacyClaim | None) -> ClaimRecord | None:
    """A PrivacyClaim in record form."""
    if claim is None:
        return None
    bounds = claim.epsilon, claim.epsilon if claim.derived is None else claim.derived
    epsilon, derived = (bound if math.isfinite(bound) else None for bound in bounds)
    return ClaimRecord(
        unit=claim.unit, epsilon=epsilon, derived=derived, delta=claim.delta, assumptions=claim.assumptions,
        basis=claim.basis, neighbours=claim.neighbours, units=claim.units,
    )  # fmt: skip
