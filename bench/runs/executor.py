"""Executors: where `bench run --executor NAME` has its workers started. Each is a class in a file of its own.

`bench run` first writes its plan into the results folder (`bench.runs.planner`). An executor then starts processes that
run `bench worker` on that folder, as many as it is asked for and with what their jobs need, and can tell how many of
them wait and run. It hands out no jobs, moves no data and records nothing: workers claim jobs by themselves, and a job
whose worker is lost is claimed by another. So an executor may lose workers, start too many or none, and be stopped.

To add one: a class with the methods of `Executor`, made from `Started` and what the command line said of it, and a line
in `EXECUTORS`. `local` is none of them: it does the jobs in this process's own workers, without a plan on disk; `none`
starts nothing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, cast

from bench.runs.needs import Needs

Executing = Literal["local", "none", "processes"]
EXECUTORS: Mapping[str, str] = {"processes": "bench.runs.processes:Processes"}
"""Executors that start workers, as MODULE:CLASS: nothing of an engine is imported before it is asked for."""


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
        options: What the command line said for the executor alone, by name.
    """

    results: Path
    data_roots: tuple[Path, ...]
    logs: Path
    most: int | None
    options: Mapping[str, str]

    def command(self, needs: Needs) -> list[str]:
        """The command of a worker for jobs of a resource class, which ends when no such job is left."""
        found = [sys.executable, "-m", "bench", "worker", "--results", str(self.results), "--device", needs.device]
        found += [word for root in self.data_roots for word in ("--data-root", str(root))]
        return [*found, "--alone"] if needs.alone else found


class Executor(Protocol):
    """Starts workers somewhere. `counts` and `stop` speak of those that this object has started."""

    def start(self, needs: Needs, count: int) -> None:
        """Have up to `count` workers for jobs of a resource class started; called once a class, the largest first."""

    def counts(self) -> WorkerCounts:
        """How they stand now."""

    def stop(self) -> None:
        """End those that live, so that each gives its job back; called when the run is stopped, not when detached."""


def executor(name: str, started: Started) -> Executor:
    """The executor of that name. Raises UsageError where it cannot work here, KeyError for an unknown name."""
    module, _, cls = EXECUTORS[name].partition(":")
    return cast(Executor, getattr(importlib.import_module(module), cls)(started))
