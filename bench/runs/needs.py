"""What a job needs of the machine that does it: by this, jobs are told apart where somebody starts workers for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # the command line is laid out from what imports this, before anything heavy is imported
    from pydantic import JsonValue


@dataclass(frozen=True, order=True)
class Needs:
    """A resource class.

    Args:
        device: "cpu" or "cuda".
        alone: Nothing else may run on the machine meanwhile (timings).
        minutes: Of work, at most; on the wall a job may take longer (`bench.runs.job_clock`).
        memory: Bytes; None where nobody said.
    """

    device: str
    alone: bool
    minutes: int
    memory: int | None

    @classmethod
    def of(cls, *, device: str, alone: bool, seconds: float, memory: int | None) -> Needs:
        """What a job needs that may work so many seconds."""
        return cls(device, alone, math.ceil(seconds / 60), memory)

    def values(self) -> dict[str, JsonValue]:
        """As JSON: `read` gives the same."""
        return {"device": self.device, "alone": self.alone, "minutes": self.minutes, "memory": self.memory}

    @classmethod
    def read(cls, values: Mapping[str, JsonValue]) -> Needs:
        """What `values` described."""
        memory = values["memory"]
        return cls(
            str(values["device"]), bool(values["alone"]), int(cast(int, values["minutes"])),
            None if memory is None else int(cast(int, memory)),
        )  # fmt: skip
