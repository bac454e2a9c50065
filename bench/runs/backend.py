"""Where jobs execute: what a back end must do, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.results.records import Status


@dataclass(frozen=True)
class Job:
    """A function to call somewhere else.

    Args:
        name: For display.
        work: Module-level function of no arguments but `argument`; result and argument travel between processes.
        argument: What it is called with.
        timeout: Seconds before it is stopped.
        log: File that takes what the worker prints.
        alone: Run it while nothing else runs (timings).
        number: Tells the jobs of a run apart, whatever they are called.
    """

    name: str
    work: Callable[[object], object]
    argument: object
    timeout: float
    log: Path
    alone: bool = False
    number: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of a job: `value` if ok, else the reason and the stage it was in."""

    status: Status
    value: object
    reason: str | None
    phase: str | None
    seconds: float


class Backend(Protocol):
    """Executes jobs, each apart from the others: an exception, a hang or a memory blow-up touches no other job."""

    def submit(self, job: Job) -> None:
        """Queue a job."""

    def next(self) -> tuple[Job, Outcome] | None:
        """The next finished job, or None when nothing is queued or running."""

    def close(self) -> None:
        """Stop what is running, and start nothing more."""
