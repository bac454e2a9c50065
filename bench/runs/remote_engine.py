"""The base of the engines on other machines that share the folder.

A task reads its job from a file and leaves the outcome in another (`bench.runs.remote_task`). Outcomes of evaluations
are kept by content until the run has written their records: a run that was killed takes them over when it goes on.
"""

from __future__ import annotations

import contextlib
import pickle
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from bench.disk import process_id
from bench.disk.atomic_file import make_folder, write_atomically
from bench.disk.process_id import is_left
from bench.plugins.spec import UsageError
from bench.results.results import SETTLED
from bench.runs.engine import OVERHEAD_GIB, Engine, Future, Launch, Needs, Outcome, kinds, python
from bench.runs.outcome_record import read_outcome
from bench.runs.remote_task import DISK, RemoteJob, Task

VISIBLE_SECONDS = 60
"""Longest time until an outcome appears on a network file system after its task (option `visible`)."""
MOST_TRIES = 5
"""Starts of a job whose tasks end without an outcome: the job itself may be the cause."""
MOST_REFUSALS, RETRY_SECONDS = 3, 20.0
"""Number of times, and pause in seconds, for handing over jobs that the engine refused."""
GATHER_SECONDS = 10.0
"""Jobs that become ready within so long go into one array."""
_LOOK_SECONDS = 0.5
_ONCE = "once-"
Handle = TypeVar("Handle")


class EngineError(Exception):
    """The engine refused jobs or does not answer, for the reason given."""


@dataclass(eq=False)
class Sent(Generic[Handle]):
    """A job that the engine has, handed over `tries` times.

    `ended` is when it was first seen to have ended, on the monotonic clock; None while it waits or runs.
    """

    future: Future
    task: RemoteJob
    handle: Handle
    tries: int
    ended: float | None = None


class RemoteEngine(Engine, Generic[Handle]):
    """An engine on other machines; subclasses start and watch its tasks."""

    keeps_outcomes = True

    def __init__(self, launch: Launch) -> None:
        super().__init__()
        self._launch = launch
        self._ready: list[tuple[Future, int]] = []  # with how often each was tried before
        self._ready_since = 0.0
        self._sent: list[Sent[Handle]] = []
        self._refusals: dict[tuple[bool, Needs], tuple[int, float]] = {}  # how many, and when to try again
        self._accepted = False
        self._finished = 0
        self._tasks: dict[Future, RemoteJob] = {}
        self._visible = launch.options.count("visible", ()) or VISIBLE_SECONDS
        self._folder = launch.results.tasks
        make_folder(self._folder, mode=0o700)
        _sweep(self._folder)

    @abstractmethod
    def _hand_over(self, needs: Needs, tasks: Sequence[Task], logs: Path) -> list[Handle]:
        """Start tasks of one resource class. Raises EngineError if refused."""

    @abstractmethod
    def _ended(self, handles: Sequence[Handle]) -> dict[Handle, int | None]:
        """Ended tasks with their exit code; None if it is unknown."""

    @abstractmethod
    def _cancel(self, handles: Sequence[Handle]) -> None:
        """End tasks."""

    @abstractmethod
    def _cores(self, needs: Needs) -> int | None:
        """Threads of a job; None for all of its node's."""

    def _most(self, needs: Needs) -> int | None:
        """Most jobs with the engine at a time; None for no limit."""
        return None

    def close(self) -> None:
        """As in `Engine`."""
        self._ready.clear()
        self._cancel([sent.handle for sent in self._sent])
        for sent in self._sent:
            _task_file(sent.task).unlink(missing_ok=True)
        self._sent.clear()

    def forget(self, future: Future) -> None:
        """As in `Engine`."""
        if (task := self._tasks.pop(future, None)) is not None:
            for path in (_task_file(task), task.outcome, task.lock):  # a task looks for its file first
                path.unlink(missing_ok=True)

    def _start(self, futures: Sequence[Future]) -> None:
        for future in futures:
            task = self._task(future)
            if (kept := read_outcome(task.outcome, task.kind, task.job.answer)) is not None and kept.status in SETTLED:
                self._finish(future, kept)
                continue
            task.outcome.unlink(missing_ok=True)  # of a try that failed: the new one is not to find it
            if not self._ready:
                self._ready_since = time.monotonic()
            self._ready.append((future, 0))

    def _busy(self) -> bool:
        return bool(self._ready or self._sent)

    def _advance(self) -> None:
        if self._ready and (not self._sent or time.monotonic() - self._ready_since >= GATHER_SECONDS):
            self._send()
        for sent in list(self._sent):
            if (outcome := self._outcome(sent)) is not None:
                self._take(sent, outcome)
        ended = self._ended([sent.handle for sent in self._sent])
        now = time.monotonic()
        for sent in list(self._sent):
            if sent.handle not in ended:
                sent.ended = None
                continue
            code = ended[sent.handle]
            sent.ended = now if sent.ended is None else sent.ended
            if code == DISK or (code is not None and code != 0) or now - sent.ended >= self._visible:
                self._lost(sent, code)
        stage = f"{len(self._sent)} jobs with the engine, {len(self._ready)} to hand over"
        self._launch.notify("engine", stage, self._finished, self._finished + len(self._sent) + len(self._ready))
        if not self._done:
            time.sleep(_LOOK_SECONDS)

    def _send(self) -> None:
        """Hand over ready jobs, an array for each stage and class."""
        groups: dict[tuple[bool, Needs], list[tuple[Future, int]]] = {}
        for future, tries in self._ready:
            groups.setdefault((future.job.prepares, future.job.needs(self._launch.memory)), []).append((future, tries))
        self._ready = []
        for stage, group in groups.items():
            count, again = self._refusals.get(stage, (0, 0.0))
            if time.monotonic() < again:
                self._ready += group
                continue
            if (most := self._most(stage[1])) is not None:
                room = max(0, most - len(self._sent))
                group, later = group[:room], group[room:]
                self._ready += later
            if not group:
                continue
            try:
                tasks = [self._task(future) for future, _ in group]
                for task in tasks:
                    _write_task(task)
                handles = self._hand_over(stage[1], [_command(task) for task in tasks], self._logs)
            except EngineError as error:
                self._refused(stage, group, count + 1, str(error))
                continue
            self._accepted = True
            self._refusals.pop(stage, None)
            for (future, tries), task, handle in zip(group, tasks, handles, strict=True):
                self._sent.append(Sent(future, task, handle, tries + 1))

    def _refused(self, stage: tuple[bool, Needs], group: list[tuple[Future, int]], count: int, text: str) -> None:
        if not self._accepted:  # a wrong option, most likely: nothing has begun
            raise UsageError(text)
        if count < MOST_REFUSALS:
            self._refusals[stage] = (count, time.monotonic() + RETRY_SECONDS)
            self._ready += group
            return
        self._refusals.pop(stage, None)
        for future, _ in group:
            future.ran, future.refused = False, text
            self._finish(future, Outcome("failed", None, "error", text, "start", 0.0))

    def _take(self, sent: Sent[Handle], outcome: Outcome) -> None:
        self._sent.remove(sent)
        self._finished += 1
        self._finish(sent.future, outcome)

    def _lost(self, sent: Sent[Handle], code: int | None) -> None:
        """Start the job of a lost task again, or give it up."""
        if code == DISK:
            reason = "the disk of its machine, or of the results folder, is full or out of reach"
            self._take(sent, Outcome("failed", None, "disk", reason, "start", 0.0))
        elif sent.tries >= MOST_TRIES:
            reason = f"{sent.tries} tasks in a row ended without an outcome; their logs are in {self._logs}"
            self._take(sent, Outcome("failed", None, "died", reason, "start", 0.0))
        else:
            self._sent.remove(sent)
            if not self._ready:
                self._ready_since = time.monotonic()
            self._ready.append((sent.future, sent.tries))

    @property
    def _logs(self) -> Path:
        folder = self._launch.results.log("tasks", "all").parent
        make_folder(folder, mode=0o700)
        return folder

    def _outcome(self, sent: Sent[Handle]) -> Outcome | None:
        return read_outcome(sent.task.outcome, sent.task.kind, sent.future.job.answer)

    def _memory(self, needs: Needs) -> int | None:
        """Bytes for a job; None for most of its node's memory."""
        asked = self._launch.options.gib("mem", kinds(needs))
        if needs.memory is not None or asked is None:
            return needs.memory
        return int(max(asked - OVERHEAD_GIB, asked / 2) * 2**30)

    def _task(self, future: Future) -> RemoteJob:
        """The files of a job, named by its content key if any."""
        if future not in self._tasks:
            job = future.job
            needs = job.needs(self._launch.memory)
            name = job.key or f"{_ONCE}{process_id.own_name()}"
            self._tasks[future] = RemoteJob(
                job, self._folder / f"{name}.json", f"outcome {name}", self._folder / f"{name}.lock",
                self._memory(needs), self._cores(needs),
            )  # fmt: skip
        return self._tasks[future]


def _task_file(task: RemoteJob) -> Path:
    return task.outcome.with_suffix(".job")


def _write_task(task: RemoteJob) -> None:
    try:
        write_atomically(_task_file(task), pickle.dumps(task), mode=0o600, sweep=False)
    except OSError as error:
        raise EngineError(f"the job cannot be written: {error}") from error


def _command(task: RemoteJob) -> Task:
    return Task(tuple(python("-m", "bench.runs.remote_task", str(_task_file(task)))))


def _sweep(folder: Path) -> None:
    """Remove the files of single tasks of runs that were killed."""
    for path in folder.glob(f"{_ONCE}*"):
        if is_left(path, path.stem.removeprefix(_ONCE)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
