"""What a job needs of the machine that does it: by this, jobs are told apart where somebody starts workers for them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # the command line is laid out from what imports this, before anything heavy is imported
    from pydantic import JsonValue


_NAME = re.compile(r"(?P<device>cpu|cuda)(?P<alone>-alone)?-(?P<minutes>[1-9][0-9]*)m(-(?P<memory>[0-9.]+)g)?")


@dataclass(frozen=True)
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

    @property
    def name(self) -> str:
        """The class in a word, which `named` reads: `cuda-alone-60m-16g`."""
        memory = "" if self.memory is None else f"-{str(self.memory / 2**30).removesuffix('.0')}g"  # to the byte
        return f"{self.device}{'-alone' if self.alone else ''}-{self.minutes}m{memory}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of worker that do such jobs, the more special last, as options of engines name them."""
        return (self.device, "alone") if self.alone else (self.device,)

    @classmethod
    def named(cls, name: str) -> Needs:
        """The class of that name.

        >>> Needs.named("cuda-alone-60m-16g").name
        'cuda-alone-60m-16g'

        Raises:
            ValueError: It names none.
        """
        found = _NAME.fullmatch(name)
        if found is None:
            raise ValueError(f"expected a resource class such as cpu-60m or cuda-alone-60m-16g, got {name!r}")
        memory = None if found["memory"] is None else int(float(found["memory"]) * 2**30)
        return cls(found["device"], found["alone"] is not None, int(found["minutes"]), memory)

    def covers(self, job: Needs, *, prepares: bool) -> bool:
        """Whether a worker that was started for this class may do a job.

        What prepares others is done by a worker that holds its machine alone, too, or it might wait in vain.
        """
        small = job.device == self.device and job.minutes <= self.minutes and (job.memory or 0) <= (self.memory or 0)
        return small and (job.alone or prepares if self.alone else not job.alone)

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
