"""A running job: its process, messages and end."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Self

import psutil

from bench.results.reason import Phase
from bench.runs.answers import MESSAGE_CAP
from bench.runs.engine import Future, Job, Outcome
from bench.runs.job_clock import JobClock
from bench.runs.process_tree import below, end_below
from bench.runs.supervisor import supervise
from bench.wire.message import Reader

_ENDING_SECONDS = 5.0
_ENDING_LOOKS = 50
_MORE_STARTS = 10
_RETRY_SECONDS = 0.2


@dataclass(eq=False)
class JobProcess:
    """A job and the process that does it.

    Args:
        future: The job's future.
        process: Its supervisor, which stands above the worker.
        pipe, reader: Messages of the worker.
        more: Takes the next job for a worker that is kept.
        started: When, on the run's clock.
        clock: The clock of the job.
        tree: The supervisor, once it is there.
    """

    future: Future
    process: BaseProcess
    pipe: Connection
    reader: Reader
    more: Connection
    started: float
    clock: JobClock
    tree: psutil.Process | None = None
    looked: float = 0.0
    walked: float = 0.0
    phase: Phase = "start"
    peaks: dict[Phase, int] = field(default_factory=dict)
    bounds: dict[Phase, int] = field(default_factory=dict)  # what `at_most` said when `memory` was last asked
    said: int = 0
    outcome: Outcome | None = None
    answered: float = 0.0
    silent: bool = False
    seen: set[psutil.Process] = field(default_factory=set)

    @property
    def job(self) -> Job:
        """The job."""
        return self.future.job

    @classmethod
    def prepared(cls, future: Future, context: BaseContext, threads: int) -> tuple[Self, tuple[Connection, ...]]:
        """A job before its process starts, and pipe ends to close then."""
        ours, theirs = context.Pipe(duplex=False)
        nexts, more = context.Pipe(duplex=False)
        job = future.job
        process = context.Process(target=supervise, args=(job, theirs, nexts, threads))  # type: ignore[attr-defined]
        now = time.perf_counter()
        reader = Reader(ours.fileno(), MESSAGE_CAP)
        return cls(future, process, ours, reader, more, now, JobClock(job.timeout, now)), (theirs, nexts)

    def begin(self) -> None:
        """Start the process; try again if the fork server was killed."""
        for _ in range(_MORE_STARTS):
            with contextlib.suppress(ConnectionError, EOFError):
                self.process.start()
                break
            time.sleep(_RETRY_SECONDS)
        else:
            self.process.start()
        self.tree = _process(self.process.pid)

    @property
    def may_go_on(self) -> bool:
        """True if the worker succeeded and left no process behind."""
        fine = self.outcome is not None and self.outcome.status in ("ok", "not-applicable")
        return fine and self.job.keeps and not self.silent and self.tree is not None and len(below(self.tree)) == 1

    def goes_on(self, future: Future) -> Self | None:
        """The same worker at another job; None if it has ended meanwhile."""
        assert self.tree is not None
        now, living = time.perf_counter(), below(self.tree)
        if len(living) != 1:  # killed while it waited: its supervisor may not have noticed yet
            return None
        clock = JobClock(future.job.timeout, now)
        clock.leave_out(self.tree, living)
        try:
            self.more.send(future.job)
        except OSError:
            return None
        return type(self)(future, self.process, self.pipe, self.reader, self.more, now, clock, self.tree)

    def ends(self) -> list[Connection | int]:
        """Handles to wait for: the process's end and its messages."""
        heard = self.outcome is not None or self.silent
        return [self.process.sentinel] if heard else [self.process.sentinel, self.pipe]

    def kill(self) -> None:
        """Stop the worker and its descendants; its supervisor ends by itself."""
        if self.process.pid is None:  # a signal came before it was there
            return
        self.tree = self.tree or _process(self.process.pid)
        if self.tree is None:  # it was gone as soon as it was there
            return
        end_below(self.tree, self.seen)
        for _ in range(_ENDING_LOOKS):
            if not self.process.is_alive():
                break
            with contextlib.suppress(psutil.Error):
                self.tree.resume()  # if it was stopped
            self.process.join(timeout=_ENDING_SECONDS / _ENDING_LOOKS)
            end_below(self.tree)  # it may have been about to start its worker
        self.process.kill()
        self.process.join()

    def close(self) -> None:
        """Close what connects the run with the process."""
        self.pipe.close()
        self.more.close()


def _process(pid: int | None) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None
