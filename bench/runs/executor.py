"""Executors: where `bench run --executor NAME` has its workers started. Each is a class in a file of its own.

`bench run` first writes its plan into the results folder (`bench.runs.planned_run`). An executor then starts processes
that run `bench worker` on that folder, as many as it is asked for and with what their jobs need, and can tell how many
of them wait and run. It hands out no jobs, moves no data and records nothing: workers claim jobs by themselves, and a
job whose worker is lost is claimed by another. So an executor may lose workers, start too many or none, and be stopped.

To add one: a class with the methods of `Executor`, made from `Started`, and a line in `EXECUTORS`. `local` is none of
them: it does the jobs in this process's own workers, without a plan on disk; `none` starts nothing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

if TYPE_CHECKING:  # the command line is laid out from this module, before anything heavy is imported
    from bench.runs.engine_options import EngineOptions
    from bench.runs.needs import Needs

_MOST_WORKERS = 100
Executing = Literal["local", "none", "processes", "slurm", "ray"]
EXECUTORS: Mapping[str, str] = {
    "processes": "bench.runs.processes:Processes",
    "slurm": "bench.runs.slurm:Slurm",
    "ray": "bench.runs.ray_cluster:RayCluster",
}
"""Executors that start workers, as MODULE:CLASS: nothing of an engine is imported before it is asked for."""


@dataclass(frozen=True)
class Wanted:
    """Jobs of a resource class that are to be done: those that measure, and those that others wait for."""

    needs: Needs
    measuring: int
    preparing: int

    @property
    def jobs(self) -> int:
        """All of them."""
        return self.measuring + self.preparing


@dataclass(frozen=True)
class WorkerCounts:
    """How the workers stand that an executor was asked for: what the engine says, not what they do."""

    waiting: int = 0
    running: int = 0
    ended: int = 0

    @property
    def living(self) -> int:
        """Those that have not ended."""
        return self.waiting + self.running


@dataclass(frozen=True)
class Started:
    """What every worker of a run is started with.

    Args:
        results: The shared folder.
        data_roots: Folders above raw data.
        logs: A folder for what workers print.
        most: At most so many workers at a time; None leaves it to the executor.
        detached: They go on when the process ends that started them.
        options: What the command line and its configuration said for the engine alone.
    """

    results: Path
    data_roots: tuple[Path, ...]
    logs: Path
    most: int | None
    detached: bool
    options: EngineOptions

    def workers(self, kinds: Sequence[str]) -> int:
        """At most so many of some kinds are started at once, by an engine that queues them."""
        return self.options.count("workers", kinds) or self.most or _MOST_WORKERS

    def command(
        self, device: str, *, alone: bool = False, only: Needs | None = None, prepare: bool = False,
        cores: int | None = None, minutes: float | None = None, memory: float | None = None,
    ) -> list[str]:  # fmt: skip
        """The command of a worker, which ends when nothing is left for it.

        Args:
            device: "cpu" or "cuda".
            alone: It holds its machine alone.
            only: The resource class whose jobs it does; None for all.
            prepare: It ends when no job is left that others wait for.
            cores: Threads of a job; None for one a core.
            minutes: After so long it stops.
            memory: GiB that a job may hold where its plan does not say.
        """
        found = [sys.executable, "-m", "bench", "worker", "--results", str(self.results), "--device", device]
        found += [word for root in self.data_roots for word in ("--data-root", str(root))]
        found += [word for word, given in (("--alone", alone), ("--prepare", prepare)) if given]
        values = {
            "--only": None if only is None else only.name, "--cores": cores, "--limit-minutes": minutes,
            "--memory": memory,
        }  # fmt: skip
        return found + [word for flag, value in values.items() if value is not None for word in (flag, str(value))]


class Executor(Protocol):
    """Starts workers somewhere. `counts` and `stop` speak of those that this object has started."""

    def start(self, wanted: Sequence[Wanted]) -> None:
        """Have workers started for jobs of resource classes; called again with what is left when they were lost.

        Raises:
            UsageError: The engine refuses.
        """

    def counts(self) -> WorkerCounts:
        """How they stand now."""

    def stop(self) -> None:
        """End those that live, so that each gives its job back; called when the run is over, not when detached."""


def executor(name: str, started: Started) -> Executor:
    """The executor of that name. Raises UsageError where it cannot work here, KeyError for an unknown name."""
    module, _, cls = EXECUTORS[name].partition(":")
    return cast(Executor, getattr(importlib.import_module(module), cls)(started))
