"""What all parts of a record have in common: no unknown fields, no change, no number that is not finite."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MOST = 2**63 - 1
Whole = Annotated[int, Field(ge=-MOST, le=MOST)]
"""A whole number that tables of 64 bits hold, as parquet's are; one beyond stops whoever writes such a table."""
Count = Annotated[int, Field(ge=0, le=MOST)]
"""How many there are of something."""


class Part(BaseModel):
    """A frozen model of a record, or of a part of one."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
