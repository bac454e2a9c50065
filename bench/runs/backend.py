"""Where jobs execute: what a back end must do, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.results.reason import Code, Phase
from bench.results.records import Status


@dataclass(frozen=True)
class Job:
    """A function to call somewhere else.

    Args:
        name: For display.
        work: Module-level function of no arguments but `argument`, which is pickled on its way.
        argument: What it is called with.
        answer: The type of its result, which comes back as JSON and is checked: a pydantic model, or another type that
            it checks.
        timeout: Seconds that it may work, as `bench.runs.job_clock` counts them.
        log: File that takes what the worker prints.
        keeps: The process that did it may do the next such job: what it holds (a GPU's context, libraries) is costly to
            have anew, and all code that it ran is this project's.
        alone: Run it while nothing else runs (timings).
        prepares: Nothing is measured by it: at most half of the workers do such jobs while others wait, so that figures
            come early.
        restricted: Its data may not be shared: of an outcome and of stages nothing is said but codes from fixed lists.
        heard: Exceptions whose text is said all the same: those of the data set, which knows what may be said.
        device: "cpu" or "cuda".
        key: What the job is called wherever the same run is planned (`bench.runs.planned_run`).
        number: Tells the jobs of a run apart, whatever they are called.
    """

    name: str
    work: Callable[[object], object]
    argument: object
    answer: type[object]
    timeout: float
    log: Path
    keeps: bool = False
    alone: bool = False
    prepares: bool = False
    restricted: bool = False
    heard: tuple[type[Exception], ...] = ()
    device: str = "cpu"
    key: str = ""
    number: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of a job: `value` if ok, else why there is none, as a code and in words, and the phase it was in.

    `seconds` are those on the wall, `cpu_seconds` of the processor, `peaks` the most bytes that were seen to be held in
    each phase, for all processes of the job. `elsewhere` says that another worker did it and has recorded it.
    """

    status: Status
    value: object
    code: Code | None
    reason: str | None
    phase: Phase | None
    seconds: float
    cpu_seconds: float = 0.0
    elsewhere: bool = False
    peaks: Mapping[Phase, int] = field(default_factory=dict)


class Backend(Protocol):
    """Executes jobs, each apart from the others: an exception, a hang or a memory blow-up touches no other job."""

    def submit(self, job: Job) -> None:
        """Queue a job."""

    def next(self) -> tuple[Job, Outcome] | None:
        """The next finished job, or None when nothing is queued or running."""

    def close(self) -> None:
        """Stop what is running, and start nothing more."""
