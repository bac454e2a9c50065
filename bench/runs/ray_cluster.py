"""The executor `ray`: workers as tasks of a Ray cluster.

A task holds the processors, accelerator and memory that its jobs need for as long as its worker lives, and gives back
an exit code: jobs are claimed from the results folder, and what they make lies there, so nothing of a run is in Ray's
object store. A task whose node or process is lost is started again by Ray; its job passes on by its lease.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from bench.plugins.spec import UsageError
from bench.runs.executor import Started, Wanted, WorkerCounts
from bench.runs.ray_task import LostError, live
from bench.workbench.cores import cores

if TYPE_CHECKING:
    from ray import ObjectRef

OPTIONS = ("address", "cpus", "gpus", "mem", "retries", "workers")
RETRIES = 20
_STORE_BYTES = 100 * 2**20
_END_SECONDS = 60.0


class RayCluster:
    """Starts workers as tasks of Ray (a `bench.runs.executor.Executor`)."""

    def __init__(self, started: Started) -> None:
        try:
            import ray
        except ImportError as error:
            raise UsageError("--executor ray needs Ray: pip install 'veil-bench[ray]'") from error
        options = started.options
        options.check(OPTIONS)
        if started.detached:
            raise UsageError(
                "--detach: Ray ends tasks with the process that asked for them; hand that one to Ray, too: "
                "ray job submit -- bench run --executor ray ..."
            )
        self._started, self._ray = started, ray
        self._tasks: list[ObjectRef[int]] = []
        self._later: list[Wanted] = []
        if not ray.is_initialized():
            address = options.text("address", ())
            here = {"num_cpus": cores(), "object_store_memory": _STORE_BYTES, "_system_config": {"worker_niceness": 0}}
            elsewhere = address is not None or bool(os.environ.get("RAY_ADDRESS"))  # no sizes may be given to that
            stop = signal.getsignal(signal.SIGTERM)
            try:
                ray.init(  # "local" starts one, where Ray would else look for one that somebody has started here
                    address if elsewhere else "local", include_dashboard=False, log_to_driver=False,
                    logging_level="WARNING", **({} if elsewhere else here),
                )  # fmt: skip
            except Exception as error:  # Ray raises the bare class where a node does not start in time
                raise UsageError(f"Ray cannot be reached: {error}") from error
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, stop)  # a command is stopped as all others are; Ray has taken the signal

    def start(self, wanted: Sequence[Wanted]) -> None:
        """As in `Executor`; timings come when the other workers have ended, for they want a node to themselves."""
        self._later = [each for each in wanted if each.needs.alone]
        for each in wanted:
            if not each.needs.alone:
                self._submit(each)

    def counts(self) -> WorkerCounts:
        """As in `Executor`; Ray does not tell tasks that wait from those that run."""
        living = self._living()
        if not living and self._later:
            for each in self._later:
                self._submit(each)
            self._later, living = [], self._living()
        return WorkerCounts(len(self._later), len(living), len(self._tasks) - len(living))

    def stop(self) -> None:
        """As in `Executor`."""
        self._later, living = [], self._living()
        for task in living:
            self._ray.cancel(task)
        if living:
            self._ray.wait(living, num_returns=len(living), timeout=_END_SECONDS)
        self._ray.shutdown()

    def _living(self) -> list[ObjectRef[int]]:
        if not self._tasks:
            return []
        return cast("list[ObjectRef[int]]", self._ray.wait(self._tasks, num_returns=len(self._tasks), timeout=0)[1])

    def _submit(self, wanted: Wanted) -> None:
        needs, options = wanted.needs, self._started.options
        kinds = needs.kinds
        cpus = options.count("cpus", kinds) or 1
        whole, each = options.memory(needs, kinds)
        command = self._started.command(
            needs.device, alone=needs.alone, only=needs, cores=None if needs.alone else cpus,
            memory=each,
        )  # fmt: skip
        task = self._ray.remote(live).options(
            name=f"bench {needs.name}",
            num_cpus=cpus,
            num_gpus=(options.count("gpus", kinds) or 1) if needs.device == "cuda" else 0,
            memory=int((whole or 0.0) * 2**30),
            max_retries=options.count("retries", kinds) or RETRIES,
            retry_exceptions=[LostError],
        )
        self._started.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        for _ in range(1 if needs.alone else min(wanted.jobs, self._started.workers(kinds))):
            log = self._started.logs / f"ray-{len(self._tasks)}.log"
            self._tasks.append(task.remote(command, log))
