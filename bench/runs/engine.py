"""Engines: one protocol for jobs here, on SLURM or on Ray.

`submit(jobs, after=futures)` returns a future for each job; a job starts when all futures in `after` are ok, and takes
over the outcome of one that is not. `next` gives the futures in the order in which they finish. The run's own process
holds the graph of jobs. An engine places jobs, bounds them and starts lost ones again; it decides nothing else.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from bench.plugins.spec import UsageError, did_you_mean

if TYPE_CHECKING:  # the command line is laid out from this module, before anything heavy is imported
    from bench.results.reason import Code, Phase
    from bench.results.records import Status
    from bench.results.results import Results

Executing = Literal["local", "slurm", "ray"]
_REMOTE: Mapping[str, str] = {
    "slurm": "bench.runs.slurm_engine:SlurmEngine",
    "ray": "bench.runs.ray_engine:RayEngine",
}
"""Engines on other machines, as MODULE:CLASS: submitit and Ray are imported only if they are asked for."""


@dataclass(frozen=True)
class Job:
    """A function to call in a worker.

    Args:
        name: For display.
        work: Module-level function of `argument`, which is pickled on its way.
        argument: Its argument.
        answer: The type of its result, which comes back as JSON and is checked by pydantic.
        timeout: Seconds that it may work, as `bench.runs.job_process` counts them.
        log: File that takes what the worker prints.
        keeps: The worker may do the next such job: all code that it ran is this project's.
        alone: Run it while nothing else runs (timings).
        prepares: Others wait for it: at most half of the workers do such jobs, so that figures come early.
        restricted: Its data may not be shared: outcome and stages are reported by codes from fixed lists.
        heard: Exceptions that are reported in full all the same: those of the data set.
        device: "cpu" or "cuda".
        key: Content key of all that the result depends on; empty if no earlier result may be taken for it.
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

    def needs(self, memory: int | None) -> Needs:
        """The job's resource class, for a limit of so many bytes."""
        return Needs(self.device, self.alone, math.ceil(self.timeout / 60), memory)


@dataclass(frozen=True)
class Outcome:
    """A job's result: a value, or a code, reason and phase.

    `seconds` are wall seconds, `cpu_seconds` processor seconds, `peaks` the most bytes that all processes of the job
    were seen to hold in each phase.
    """

    status: Status
    value: object
    code: Code | None
    reason: str | None
    phase: Phase | None
    seconds: float
    cpu_seconds: float = 0.0
    peaks: Mapping[Phase, int] = field(default_factory=dict)


@dataclass(eq=False)
class Future:
    """A submitted job, and its outcome; None while it waits or runs.

    `ran` is False if the job never started: one that it comes after gave no value, or the engine `refused` it.
    """

    job: Job
    outcome: Outcome | None = None
    ran: bool = True
    refused: str | None = None

    @property
    def ok(self) -> bool:
        """True if it has a value."""
        return self.outcome is not None and self.outcome.status == "ok"


class Engine(ABC):
    """Runs jobs apart from each other: a failure touches no other job."""

    at_a_time = 1  # jobs on one machine, for the record
    keeps_outcomes = False  # beyond this process, by the keys of jobs

    def __init__(self) -> None:
        self._held: list[tuple[list[Future], tuple[Future, ...]]] = []
        self._done: deque[Future] = deque()

    def submit(self, jobs: Sequence[Job], after: Sequence[Future] = ()) -> list[Future]:
        """Queue jobs that start once all futures in `after` are ok."""
        futures = [Future(job) for job in jobs]
        self._held.append((futures, tuple(after)))
        return futures

    def next(self) -> Future | None:
        """The next future with an outcome; None if no job is left."""
        while True:
            self._release()
            if self._done:
                return self._done.popleft()
            if not self._busy():
                return None
            self._advance()

    def forget(self, future: Future) -> None:  # noqa: B027 (nothing is kept by an engine on this machine)
        """Drop the stored outcome of a job whose record is written."""

    @abstractmethod
    def close(self) -> None:
        """Stop what is running, and start nothing more."""

    @abstractmethod
    def _start(self, futures: Sequence[Future]) -> None:
        """Take jobs whose inputs are there."""

    @abstractmethod
    def _busy(self) -> bool:
        """True if a job that was started has no outcome yet."""

    @abstractmethod
    def _advance(self) -> None:
        """Wait a moment, and finish what is done."""

    def _finish(self, future: Future, outcome: Outcome) -> None:
        future.outcome = outcome
        self._done.append(future)

    def _release(self) -> None:
        """Start jobs whose inputs are there; pass a failed input's outcome on."""
        for entry in list(self._held):
            futures, after = entry
            lost = next((each for each in after if each.outcome is not None and not each.ok), None)
            if lost is None and any(each.outcome is None for each in after):
                continue
            self._held.remove(entry)
            if lost is None:
                self._start(futures)
                continue
            for future in futures:
                future.ran, future.refused = False, lost.refused
                self._finish(future, replace(cast(Outcome, lost.outcome), value=None))


@dataclass(frozen=True)
class Launch:
    """The settings of an engine on other machines.

    Args:
        results: The results folder, which all machines share.
        options: From `--engine` and the configuration file.
        most: Most jobs at a time; None leaves it to the engine.
        memory: Bytes that a job may hold; None if `--memory` was not given.
        notify: Called with (name, stage, done, total).
    """

    results: Results
    options: EngineOptions
    most: int | None
    memory: int | None
    notify: Callable[[str, str, int, int], None]


def remote_engine(name: str, launch: Launch) -> Engine:
    """The engine of that name. Raises UsageError if it cannot work here."""
    module, _, cls = _REMOTE[name].partition(":")
    return cast(Engine, getattr(importlib.import_module(module), cls)(launch))


def python(*words: str) -> list[str]:
    """A command of this interpreter, safe from modules in the working folder."""
    return [sys.executable, "-P", *words]


KINDS = ("cpu", "cuda", "alone")
"""Of jobs: `alone.partition=timings` is for those that hold a machine alone."""
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([MGT]?)(?:i?B)?", re.IGNORECASE)
_GIB = {"M": 1 / 1024, "": 1.0, "G": 1.0, "T": 1024.0}
OVERHEAD_GIB = 1.0  # of a worker beside its job
_TIME = re.compile(r"(?:(?P<days>[0-9]+)-)?(?P<parts>[0-9]+(?::[0-9]+){0,2})")


@dataclass(frozen=True)
class Needs:
    """A resource class: jobs with equal needs go into one array.

    `minutes` are of processor time, `memory` bytes; None if `--memory` was not given.
    """

    device: str
    alone: bool
    minutes: int
    memory: int | None


@dataclass(frozen=True)
class EngineOptions:
    """Options as written, by name, which may begin with `alone.`"""

    values: Mapping[str, str]

    @classmethod
    def read(cls, flags: Sequence[str], told: Mapping[str, object]) -> EngineOptions:
        """Options of a configuration, overridden by NAME=VALUE flags. Raises UsageError."""
        found = {}
        for name, value in told.items():
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                raise UsageError(f"engine option {name}: expected a text or a number, got {value!r:.80}")
            found[name] = str(value)
        for each in flags:
            name, equals, value = each.partition("=")
            if not (name and equals and value):
                raise UsageError(f"--engine: expected NAME=VALUE such as partition=gpu, got {each!r}")
            found[name] = value
        return cls(found)

    def check(self, known: Collection[str], free: str | None = None) -> None:
        """Raise UsageError for unknown names; those that begin with `free` pass."""
        for name in self.values:
            kind, dot, rest = name.partition(".")
            plain = rest if dot and kind in KINDS else name
            if plain not in known and not (free is not None and plain.startswith(free)):
                raise UsageError(f"engine option {name!r} is unknown; {did_you_mean(plain, known)}")

    def text(self, name: str, kinds: Sequence[str]) -> str | None:
        """An option for kinds of job; the last kind has precedence."""
        found = self.values.get(name)
        for kind in kinds:
            found = self.values.get(f"{kind}.{name}", found)
        return found

    def count(self, name: str, kinds: Sequence[str]) -> int | None:
        """A whole number of at least 1."""
        value = self.text(name, kinds)
        if value is not None and (not value.isdigit() or int(value) == 0):
            raise UsageError(f"engine option {name}: expected a whole number of at least 1, got {value!r}")
        return None if value is None else int(value)

    def gib(self, name: str, kinds: Sequence[str]) -> float | None:
        """GiB, written as 16, 16G, 16GB or 512M."""
        value = self.text(name, kinds)
        if value is None:
            return None
        found = _SIZE.fullmatch(value)
        if found is None or not float(found[1]) > 0:
            raise UsageError(f"engine option {name}: expected a size such as 16G or 512M, got {value!r}")
        return float(found[1]) * _GIB[found[2].upper()]

    def memory(self, needs: Needs, kinds: Sequence[str]) -> float | None:
        """GiB to ask of the engine for a job; None if unset.

        Raises UsageError if that is less than the job may hold.
        """
        asked = self.gib("mem", kinds)
        least = None if needs.memory is None else needs.memory / 2**30 + OVERHEAD_GIB
        if asked is not None and least is not None and asked < least:
            raise UsageError(
                f"engine option mem: expected at least {least:.1f} GiB, for a job may hold what --memory says and its "
                f"task needs {OVERHEAD_GIB:.0f} GiB beside it; got {self.text('mem', kinds)!r}"
            )
        return least if asked is None else asked

    def minutes(self, name: str, kinds: Sequence[str]) -> int | None:
        """Minutes from SLURM's formats M, M:S, H:M:S, D-H, D-H:M, D-H:M:S."""
        value = self.text(name, kinds)
        if value is None:
            return None
        found = _TIME.fullmatch(value)
        if found is None:
            raise UsageError(f"engine option {name}: expected minutes, H:M:S or D-H:M:S, got {value!r}")
        parts = [int(part) for part in found["parts"].split(":")]
        if found["days"] is None:
            hours, minutes, seconds = [0, *parts, 0] if len(parts) == 1 else [0, *parts] if len(parts) == 2 else parts
        else:
            hours, minutes, seconds = [*parts, 0, 0][:3]
        whole = math.ceil(int(found["days"] or 0) * 1440 + hours * 60 + minutes + seconds / 60)
        if not whole:
            raise UsageError(f"engine option {name}: expected at least a minute, got {value!r}")
        return whole

    def own(self, free: str, kinds: Sequence[str]) -> dict[str, str]:
        """Options that begin with `free`, without that prefix."""
        names = {name.rpartition(free)[2] for name in self.values if free in name}
        found = {name: self.text(f"{free}{name}", kinds) for name in sorted(names)}
        return {name: value for name, value in found.items() if value is not None}


def kinds(needs: Needs) -> tuple[str, ...]:
    """The kinds of a resource class in options, special ones last."""
    return (needs.device, "alone") if needs.alone else (needs.device,)
