"""What a worker is, and which jobs of a plan it takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from bench.runs.backend import Job

_HALF = 0.5
Ends = tuple[float, float]
"""When a worker stops, on the monotonic clock, and how many seconds it has in all."""


class TimeUpError(Exception):
    """The worker has no time left; its job is anybody's."""


class DiskFailureError(OSError):
    """A disk of the worker's machine is full or out of reach; its job is anybody's."""


@dataclass(frozen=True)
class Offer:
    """What a worker is, and what it may do.

    Args:
        devices: Kinds of device whose jobs it does.
        alone: Whether it holds its machine alone.
        told: What others may read of it: at least its `host` and `hardware`.
        seconds: For how long it may be silent before another takes its job.
        ends: When it stops; None for no limit.
        patient: Whether it waits for what others are at.
        only: The names of the jobs that it does; None for all.
        prepares: It is there for jobs that others wait for: it does those first, and ends when none is left.
    """

    devices: frozenset[str]
    alone: bool
    told: Mapping[str, JsonValue]
    seconds: float
    ends: Ends | None
    patient: Callable[[float], bool]
    only: frozenset[str] | None = None
    prepares: bool = False

    def suits(self, job: Job) -> bool:
        """Whether it may ever do a job."""
        asked = self.only is None or job.key in self.only
        return asked and job.device in self.devices and (self.alone or not job.alone)

    def fits(self, job: Job) -> bool:
        """Whether a job may be through before the worker stops; with half of its time left it tries any."""
        if self.ends is None:
            return True
        left, whole = self.ends[0] - time.monotonic(), self.ends[1]
        return left >= min(job.timeout, _HALF * whole)

    def rank(self, job: Job) -> int:
        """What it does first, by the lowest number: what few can do, then what gives figures."""
        if self.prepares:
            return 0 if job.prepares else 1
        return 0 if job.alone else 2 if job.prepares else 1


def pause(ends: Ends | None, seconds: float) -> None:
    """Wait a while. Raises TimeUpError where it is time to stop."""
    if ends is not None and time.monotonic() >= ends[0]:
        raise TimeUpError
    time.sleep(seconds)
