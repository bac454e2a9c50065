"""What all parts of a record have in common: no unknown fields, no change, no number that is not finite."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A frozen model of a record, or of a part of one."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
