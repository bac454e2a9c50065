"""The executor `processes`: workers on this machine, which see one another as workers on several machines do."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from itertools import groupby

from bench.runs.executor import Started, Wanted, WorkerCounts
from bench.workbench.cores import cores
from bench.workbench.machine import threads_each, usual_jobs

_END_SECONDS = 60.0


class Processes:
    """Starts each worker as a process of its own (a `bench.runs.executor.Executor`)."""

    def __init__(self, started: Started) -> None:
        started.options.check(())
        self._started = started
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self, wanted: Sequence[Wanted]) -> None:
        """As in `Executor`; all classes of a device share one machine, and who wants it alone waits for the others."""
        kinds = sorted(wanted, key=lambda each: (each.needs.alone, each.needs.device))
        for (alone, device), group in groupby(kinds, key=lambda each: (each.needs.alone, each.needs.device)):
            jobs = sum(each.jobs for each in group)
            most = self._started.most or (usual_jobs(device) if device == "cuda" else cores())
            count = 1 if alone else min(jobs, most)
            threads = None if alone else threads_each(count)
            for _ in range(count):
                self._begin(self._started.command(device, alone=alone, cores=threads))

    def counts(self) -> WorkerCounts:
        """As in `Executor`."""
        living = sum(worker.poll() is None for worker in self._workers)
        return WorkerCounts(running=living, ended=len(self._workers) - living)

    def stop(self) -> None:
        """As in `Executor`."""
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(_END_SECONDS)

    def _begin(self, command: Sequence[str]) -> None:
        self._started.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._started.logs / f"worker-{len(self._workers)}.log").open("ab") as log:
            self._workers.append(
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=self._started.detached
                )
            )
