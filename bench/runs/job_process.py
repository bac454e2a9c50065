"""A running job: its process, messages and end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Self

import psutil

from bench.results.reason import Phase
from bench.runs.engine import Future, Job, Outcome
from bench.runs.tasks import MESSAGE_CAP
from bench.runs.worker import below, end_below, supervise
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
        process: Its supervisor, which stands above the worker; `tree` once it is there.
        pipe, reader: Messages of the worker.
        more: Takes the next job for a worker that is kept.
        started, clock: The beginning on the run's clock, and the clock of the job.
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


STILL_SECONDS = 300.0
WALLS = 10
_SHARE = 0.001  # of a core: waking up ten times a second takes less
_TICK = 1.0


@dataclass
class JobClock:
    """The clock of a job that may work `limit` seconds.

    A loaded machine must not cost a job its result, so the wall is no measure. A job's time is the processor time of
    all its processes, at most a second each second. Parallel threads make it shorter; waiting for a busy accelerator
    counts, because it keeps a core busy. A job ends if its time is over its limit; if for `STILL_SECONDS` (or its
    limit, if shorter) it neither used a thousandth of a core nor reported a stage; or after `WALLS` times its limit.
    """

    limit: float
    started: float
    cpu: float = 0.0
    _before: tuple[float, float] = (0.0, 0.0)
    _worked: float = 0.0
    _ticked: float = 0.0
    _ticked_cpu: float = 0.0
    _moved: float = 0.0
    _moved_cpu: float = 0.0
    _own: dict[psutil.Process, float] = field(default_factory=dict)

    def look(self, now: float, root: psutil.Process | None, living: Iterable[psutil.Process]) -> None:
        """Read the processor times of the processes below `root`."""
        # Unreaped children are missing in the one sum, brief ones in the other.
        spent = self._spent(root, living)
        self.cpu = max(self.cpu, *(taken - before for taken, before in zip(spent, self._before, strict=True)))
        wall = now - self.started
        if wall - self._ticked >= _TICK:
            self._worked += min(wall - self._ticked, self.cpu - self._ticked_cpu)
            self._ticked, self._ticked_cpu = wall, self.cpu
            if self.cpu - self._moved_cpu >= _SHARE * (wall - self._moved):
                self._moved, self._moved_cpu = wall, self.cpu

    def leave_out(self, root: psutil.Process, living: Iterable[psutil.Process]) -> None:
        """Leave out what these processes have computed so far, for another job."""
        self._before = self._spent(root, living)

    def _spent(self, root: psutil.Process | None, living: Iterable[psutil.Process]) -> tuple[float, float]:
        """Processor time by the system's sum, and by processes seen here."""
        ended = 0.0 if root is None else _ended(root)
        for process in living:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                self._own[process] = times.user + times.system
                ended += self._own[process] + times.children_user + times.children_system
        return ended, sum(self._own.values())

    def said(self, now: float) -> None:
        """The job has said where it is."""
        self._moved, self._moved_cpu = now - self.started, self.cpu

    def overdue(self, now: float) -> str | None:
        """Why the job ends here; None if it may go on."""
        wall, still = now - self.started, min(STILL_SECONDS, self.limit)
        if self._worked > self.limit:
            return f"stopped after {self.limit:g} s of processor time"
        if wall - self._moved > still:
            return f"stopped after {still:g} s in which it neither computed nor said where it is"
        if wall > WALLS * self.limit:
            return f"stopped after {WALLS * self.limit:g} s, {WALLS} times what it may work"
        return None


def _ended(root: psutil.Process) -> float:
    """Processor time of the processes that ended below it."""
    with contextlib.suppress(psutil.Error):
        times = root.cpu_times()
        return float(times.children_user + times.children_system)
    return 0.0
