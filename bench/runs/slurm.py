"""The executor `slurm`: workers as tasks of SLURM arrays, through submitit.

SLURM hands out machines, and the results folder the jobs: every task is a `bench worker` for one resource class, which
claims by lease. So a lost or preempted task costs one job's time and no record, tasks need not match jobs, and what a
user starts by hand works on the same plan. The array of a resource class comes after one that prepares (opens data,
fits methods), whose workers end when all is prepared, and timings come last: nobody holds a machine in order to wait.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.plugins.spec import UsageError
from bench.runs.executor import Started, Wanted, WorkerCounts
from bench.runs.needs import Needs
from bench.runs.slurm_task import Task

if TYPE_CHECKING:
    from submitit import Job

NAMED = ("account", "comment", "constraint", "exclude", "gres", "nodelist", "partition", "qos")
"""Options that go to `sbatch` under their own names."""
OPTIONS = (*NAMED, "cluster", "cpus", "mem", "setup", "signal", "time", "workers")
OWN = "sbatch."
"""Before whatever else `sbatch` takes."""
LOCAL = "local"
"""The cluster of submitit that is this machine without SLURM: to try an installation."""
MOST_TIMEOUTS = 1000
_USUAL_MINUTES, _ROUNDS = 60, 2  # a worker does several jobs, one after the other
_SIGNAL_SECONDS, _MARGIN_SECONDS, _ANSWER_SECONDS = 90, 60, 60.0
_END_SECONDS = 60.0


class Slurm:
    """Starts workers as tasks of arrays (a `bench.runs.executor.Executor`)."""

    def __init__(self, started: Started) -> None:
        try:
            import submitit
        except ImportError as error:
            raise UsageError("--executor slurm needs submitit: pip install 'veil-bench[slurm]'") from error
        started.options.check(OPTIONS, OWN)
        self._started, self._submitit = started, submitit
        self._cluster = started.options.text("cluster", ()) or "slurm"
        self._tasks: list[Job[int]] = []
        self._last = WorkerCounts()

    def start(self, wanted: Sequence[Wanted]) -> None:
        """As in `Executor`."""
        before = len(self._tasks)
        try:
            for each in sorted(wanted, key=lambda each: each.needs.alone):
                if each.needs.alone:  # timings: what they need of others is done by then, and nobody else is here
                    self._array(each.needs, 1, after=self._tasks[before:])
                else:
                    self._array(each.needs, each.measuring, after=self._array(each.needs, each.preparing, prepare=True))
        except (self._submitit.core.utils.FailedJobError, RuntimeError, OSError, ValueError) as error:
            self._cancel(self._tasks[before:])
            del self._tasks[before:]
            raise UsageError(f"SLURM refuses: {error}") from error
        self._last = replace(self._last, waiting=self._last.waiting + len(self._tasks) - before)  # till SLURM says more

    def counts(self) -> WorkerCounts:
        """As in `Executor`; where SLURM does not answer, as it was when it did, and what was asked for since waits."""
        if self._cluster == LOCAL:
            living = sum(not task.done() for task in self._tasks)
            return WorkerCounts(running=living, ended=len(self._tasks) - living)
        states = _states(_arrays(self._tasks))
        if states is not None:
            waiting, running = states.count("PD"), sum(state != "PD" for state in states)
            self._last = WorkerCounts(waiting, running, len(self._tasks) - waiting - running)
        return self._last

    def stop(self) -> None:
        """As in `Executor`."""
        self._cancel(self._tasks)
        end = time.monotonic() + _END_SECONDS
        while self.counts().running and time.monotonic() < end:
            time.sleep(1)

    def _array(
        self, needs: Needs, jobs: int, *, prepare: bool = False, after: Sequence[Job[int]] = ()
    ) -> list[Job[int]]:
        """An array of workers for so many jobs of a class; empty for no jobs."""
        kinds = (*needs.kinds, *(["prepare"] if prepare else []))
        options, most = self._started.options, self._started.most
        count = min(jobs, self._started.workers(kinds))
        if not count:
            return []
        minutes = options.minutes("time", kinds) or max(_USUAL_MINUTES, _ROUNDS * needs.minutes)
        warning = options.count("signal", kinds) or _SIGNAL_SECONDS
        cpus = options.count("cpus", kinds) or (None if needs.alone else 1)
        whole, each = options.memory(needs, kinds)
        seconds = max(minutes * 60 - warning - _MARGIN_SECONDS, minutes * 30)
        command = self._started.command(
            needs.device, alone=needs.alone, only=needs, prepare=prepare, cores=None if needs.alone else cpus,
            minutes=seconds / 60, memory=each,
        )  # fmt: skip
        named = {name: options.text(name, kinds) for name in NAMED}
        if needs.device == "cuda" and named["gres"] is None:
            named["gres"] = "gpu:1"
        setup = options.text("setup", kinds)
        given: dict[str, object] = {
            "name": "veil-bench", "timeout_min": minutes, "cpus_per_task": cpus,
            "mem_gb": whole,
            "slurm_signal_delay_s": warning, "slurm_array_parallelism": most or count,
            "slurm_exclusive": needs.alone or None, "slurm_setup": None if setup is None else [setup],
            "slurm_dependency": f"afterany:{':'.join(_arrays(after))}" if after else None,
            "slurm_additional_parameters": {"requeue": True, **options.own(OWN, kinds)},
            **{f"slurm_{name}": value for name, value in named.items()},
        }  # fmt: skip
        self._started.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        engine = self._submitit.AutoExecutor(
            self._started.logs / "%j", cluster=self._cluster, slurm_max_num_timeout=MOST_TIMEOUTS
        )
        engine.update_parameters(**{name: value for name, value in given.items() if value is not None})
        with engine.batch():
            made = [engine.submit(Task(tuple(command), seconds)) for _ in range(count)]
        self._tasks += made
        return made

    def _cancel(self, tasks: Sequence[Job[int]]) -> None:
        if self._cluster == LOCAL:
            for task in tasks:
                task.cancel(check=False)
        elif tasks:
            subprocess.run(["scancel", *_arrays(tasks)], capture_output=True, check=False)


def _arrays(tasks: Sequence[Job[int]]) -> list[str]:
    """The numbers of the arrays that tasks belong to."""
    return list(dict.fromkeys(task.job_id.partition("_")[0] for task in tasks))


def _states(arrays: Sequence[str]) -> list[str] | None:
    """The state of every task that SLURM still knows of; None where it does not answer.

    Asked of `squeue`, for many clusters keep no accounts that `sacct` could read.
    """
    command = ["squeue", "--noheader", "--array", "--format=%t", f"--jobs={','.join(arrays)}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_ANSWER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode and "Invalid job id" not in done.stderr:  # so it calls those that ended some time ago
        return None
    return done.stdout.split()
