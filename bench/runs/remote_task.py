"""A task on another machine, and the process that does its job.

`python -m bench.runs.remote_task FILE` reads a pickled job that the run wrote, does it as this machine's engine would,
and leaves the outcome as JSON beside the file. Outcomes are never unpickled: plug-ins work below the process.
Light to import: submitit and Ray load this module before the task begins.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

    from bench.runs.engine import Job

DISK = 74
"""Exit code if the disk is full or out of reach (EX_IOERR): another try would fail as well."""
_PARENT = "BENCH_TASK_PARENT"
_STOPPED = 128 + signal.SIGTERM
_END_SECONDS, _LOOK_SECONDS, _GRACE_SECONDS = 60.0, 0.05, 1.0


class LostError(RuntimeError):
    """A signal ended the task's process; the engine may start it again."""


@dataclass(frozen=True)
class RemoteJob:
    """The content of a task's file.

    Args:
        job: The job; memory and threads in its argument are set where it runs.
        outcome, kind: The file for its outcome, and under which this proves itself (`bench.results.signed_json`).
        lock: Held while the job runs, so that a second task of the same content waits and then finds the outcome.
        memory: Bytes that it may hold; None for most of the node's.
        cores: Threads; None for all of the node's.
    """

    job: Job
    outcome: Path
    kind: str
    lock: Path
    memory: int | None
    cores: int | None


@dataclass
class Task:
    """A command tied to the engine's process (`submitit.helpers.Checkpointable`)."""

    command: tuple[str, ...]
    log: Path | None = None
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __call__(self) -> int:
        """Return 0 or `DISK`; raise LostError after a signal, else RuntimeError."""
        environment = {**os.environ, _PARENT: str(os.getpid())}
        with self.log.open("ab") if self.log else contextlib.nullcontext() as log:
            child = self._child = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        try:
            code = child.wait()
        finally:  # Ray cancels a task by an exception
            self._stop()
        if code < 0 or code > 128:
            raise LostError(f"a signal ended the task ({code})")
        if code not in (0, DISK):
            raise RuntimeError(f"the task ended with exit code {code}: the log says why")
        return code

    def checkpoint(self) -> DelayedSubmission:
        """Stop the job; the requeued task goes on from stored states."""
        from submitit.helpers import DelayedSubmission

        self._stop()
        return DelayedSubmission(Task(self.command, self.log))

    def _stop(self) -> None:
        """End the process without `Popen.wait`, which a signal may have interrupted."""
        if self._child is None or self._child.returncode is not None:
            return
        end = time.monotonic() + _END_SECONDS
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._child.pid, signal.SIGTERM)
            while time.monotonic() < end:
                if os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    break
                time.sleep(_LOOK_SECONDS)


def main(words: Sequence[str]) -> int:
    """Do the job of the file that `words` name."""
    from bench.runs.worker import end_with_parent

    end_with_parent(signal.SIGTERM)
    if os.getppid() != int(os.environ[_PARENT]):  # it has ended already
        return 1
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # SLURM sends it to all processes, and submitit acts on it
    file = Path(words[0])
    task: RemoteJob = pickle.loads(file.read_bytes())  # noqa: S301 (written by the run, into its own folder)
    return _do(task, file)


def _end(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)
    sys.exit(_STOPPED)


def _do(task: RemoteJob, file: Path) -> int:
    """Do the job unless it is done, or its file is gone."""
    from bench.disk.disk_errors import is_disk_failure
    from bench.results.build_folder import locked
    from bench.runs.outcome_record import write_outcome

    try:
        with locked(task.lock, lambda: True):
            if file.exists() and not task.outcome.exists():
                outcome = _outcome(task)
                if outcome.code == "died":  # the signal that ended the worker may reach this process next
                    time.sleep(_GRACE_SECONDS)
                if file.exists():
                    write_outcome(task.outcome, task.kind, task.job.answer, outcome)
                return DISK if outcome.code == "disk" else 0
    except OSError as error:
        if not is_disk_failure(error):
            raise
        print(f"the disk is full or out of reach: {error}", file=sys.stderr)
        return DISK
    finally:
        if not file.exists():
            task.lock.unlink(missing_ok=True)
    return 0


def _outcome(task: RemoteJob) -> Any:
    """Do the job in a worker, under the limits of this machine."""
    from dataclasses import replace

    from bench.isolation import find_isolation, remove_unused
    from bench.plugins.spec import UsageError
    from bench.runs.engine import Outcome
    from bench.runs.local_engine import LocalEngine
    from bench.workbench.machine import cores, usable_memory

    memory = task.memory or int(usable_memory())
    argument: Any = task.job.argument
    argument = replace(argument, place=replace(argument.place, memory=memory))
    if hasattr(argument, "workers"):
        argument = replace(argument, workers=task.cores or cores())
    try:
        find_isolation(getattr(argument, "isolation", "none"))
    except UsageError as error:
        return Outcome("failed", None, "usage", str(error), "start", 0.0)
    engine = LocalEngine(jobs=1, memory=memory, notify=lambda *progress: None, threads=task.cores)
    try:
        engine.submit([replace(task.job, argument=argument, keeps=False)])
        future = engine.next()
        assert future is not None
        return future.outcome
    finally:
        engine.close()
        remove_unused(argument.place.results.rooms)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
