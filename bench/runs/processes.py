"""The executor `processes`: workers on this machine, which see one another as workers on several machines do."""

from __future__ import annotations

import contextlib
import subprocess

from bench.runs.executor import Started, WorkerCounts
from bench.runs.needs import Needs

_END_SECONDS = 60.0


class Processes:
    """Starts each worker as a process of its own (a `bench.runs.executor.Executor`)."""

    def __init__(self, started: Started) -> None:
        self._started = started
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self, needs: Needs, count: int) -> None:
        """As in `Executor`; workers that want the machine for themselves wait for the others."""
        self._started.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        most = 1 if needs.alone else self._started.most or count
        for _ in range(min(count, most)):
            with (self._started.logs / f"worker-{len(self._workers)}.log").open("ab") as log:
                command = [*self._started.command(needs)]
                self._workers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

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
