"""Jobs on this machine, each in a worker process.

A worker that has run only this project's code does one job after another. A
worker ends after any failure.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.forkserver import ensure_running
from multiprocessing.util import get_temp_dir

import psutil
from pydantic import TypeAdapter, ValidationError

from bench.memory.memory_budget import GIB, at_most, memory
from bench.results.reason import ABSENT, Code, phase_of, status_of, withheld
from bench.runs.engine import Engine, Future, Outcome
from bench.runs.job_process import JobProcess
from bench.runs.tasks import Answer, Progress, allowed
from bench.runs.worker import below
from bench.shadowing import without_script
from bench.wire.message import WireError
from bench.workbench.machine import threads_each

PRELOADED = ["bench.runs.tasks", "bench.runs.worker", "scipy.stats", "bench.runs.warm"]
"""What every worker starts with: importing scipy and numba took each job that has metrics .7 s of processor time."""
_POLL_SECONDS = 0.2
_LOOK_SECONDS = 0.5
_GROWN = 1.05  # a walk over all pages takes .03 s of a job's process: small growth is none, up to the limit
_WALK_SECONDS = 10.0  # pages that are shared at first become a process's own, and no bound tells
_LINGER_SECONDS = 5.0
_LEAVE_SECONDS = 1.0
_LAST_LOOKS = 32  # at what a pipe may still hold


_LONGEST_SOCKET = 107  # bytes of the name of a socket (unix(7))
_IN_FOLDER = len("/pymp-12345678/listener-12345678")
_SHORT = ("/tmp", "/var/tmp")


def shorten_socket_path() -> None:
    """Make the folder of multiprocessing's sockets, whose names may not be long.

    It lies in TMPDIR; if that is too long, in /tmp.

    Raises:
        OSError: Neither will do; the text says how long TMPDIR may be.
    """
    usual = tempfile.gettempdir()
    most = _LONGEST_SOCKET - _IN_FOLDER
    if len(os.fsencode(usual)) <= most:
        return
    short = next((place for place in _SHORT if os.access(place, os.W_OK | os.X_OK)), None)
    if short is None:
        raise OSError(
            f"TMPDIR is {len(os.fsencode(usual))} bytes long, and sockets in it need at most {most}: set a shorter one"
        )
    tempfile.tempdir = short
    try:
        get_temp_dir()  # is kept for this process and those that it starts, and removed at its end
    finally:
        tempfile.tempdir = usual


class LocalEngine(Engine):
    """At most `jobs` worker processes on this machine.

    Args:
        jobs: Number of jobs at a time.
        memory: Bytes a worker, with what it started, may hold before it is stopped.
        notify: Called with (job name, stage, done, total) as workers report.
        threads: With which each job computes; None shares the cores among them.
    """

    def __init__(
        self, *, jobs: int, memory: int, notify: Callable[[str, str, int, int], None],
        threads: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.at_a_time = jobs
        self._jobs, self._memory, self._notify = jobs, memory, notify
        self._threads = threads
        methods = multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            # Or else the server looks for modules in the working folder first: a bench.py there would end every worker.
            os.environ.setdefault("PYTHONSAFEPATH", "1")
            self._context.set_forkserver_preload(PRELOADED)
            shorten_socket_path()
        self._waiting: deque[Future] = deque()
        self._running: list[JobProcess] = []
        self._kept: list[JobProcess] = []  # with their job done, and ready for the next

    def close(self) -> None:
        """As in `Engine`."""
        self._waiting.clear()
        for running in [*self._running, *self._kept]:
            running.kill()
        self._running.clear()
        self._kept.clear()

    def _start(self, futures: Sequence[Future]) -> None:
        self._waiting.extend(futures)

    def _busy(self) -> bool:
        return bool(self._waiting or self._running)

    def _advance(self) -> None:
        self._fill()
        wait([end for running in self._running for end in running.ends()], timeout=_POLL_SECONDS)
        for running in self._running:
            outcome = self._look(running)
            if outcome is not None:
                if running.process.is_alive():
                    self._kept.append(running)
                else:
                    running.close()
                self._running.remove(running)
                self._finish(running.future, outcome)
                return

    def _fill(self) -> None:
        """Start jobs as long as workers are free for them."""
        while self._waiting and len(self._running) < self._jobs:
            if any(running.job.alone for running in self._running):
                return
            ready = [future for future in self._waiting if not future.job.alone]
            preparing = 1 + sum(running.job.prepares for running in self._running)
            measuring = [each for each in ready if not each.job.prepares] if 2 * preparing > self._jobs else ready
            future = next(iter(measuring or ready), None)
            if future is None:
                if self._running:
                    return
                future = self._waiting[0]
            job = future.job
            self._waiting.remove(future)
            if job.keeps and self._went_on(future):
                continue
            while self._kept and (job.alone or len(self._running) + len(self._kept) >= self._jobs):
                self._dismiss(self._kept[0])
            threads = self._threads or threads_each(1 if job.alone else self._jobs)
            running, theirs = JobProcess.prepared(future, self._context, threads)
            self._running.append(running)  # first of all: a signal may end this at any line, and `close` must know it
            if self._context.get_start_method() == "forkserver":
                _serve()
            with without_script():
                running.begin()
            for end in theirs:
                end.close()

    def _went_on(self, future: Future) -> bool:
        """True if a worker that was kept does this job."""
        while self._kept:
            kept = self._kept[-1]
            if (running := kept.goes_on(future)) is not None:
                self._running.append(running)
                self._kept.remove(kept)
                return True
            self._dismiss(kept)
        return False

    def _dismiss(self, kept: JobProcess) -> None:
        """End a worker that was kept."""
        kept.kill()
        self._kept.remove(kept)
        kept.close()

    def _look(self, running: JobProcess) -> Outcome | None:
        """The outcome, once known and no process is left; does not wait."""
        now = time.perf_counter()
        seconds = now - running.started
        ended = not running.process.is_alive()
        # To measure a tree costs more than to listen: a job that says much where it is need not be measured as often.
        measured = ended or now - running.looked >= _LOOK_SECONDS
        tree: list[psutil.Process] = []
        if measured:
            running.looked = now
            tree = [] if running.tree is None else below(running.tree)
            running.clock.look(now, running.tree, tree)
        for _ in range(_LAST_LOOKS if ended else 1):
            if running.outcome is None and not running.silent:
                running.outcome = self._hear(running, seconds)
                running.answered = now
        if ended:
            running.kill()  # what had left the tree before
            return running.outcome or _died(running, seconds)
        if running.outcome is not None:
            if running.may_go_on and 2 * max(running.peaks.values(), default=0) <= self._memory:
                return running.outcome
            linger = _LEAVE_SECONDS if running.job.keeps else _LINGER_SECONDS  # what is kept does not end by itself
            if now - running.answered > linger or running.outcome.status != "ok":
                running.kill()
            return running.outcome if not running.process.is_alive() else None
        if not measured:
            return None
        if (overdue := running.clock.overdue(now)) is not None:
            running.outcome = _without(running, "timed-out", overdue, seconds)
            return None
        running.seen = {process for process in running.seen if process.is_running()}.union(tree)
        self._measure(running, tree, seconds)
        return None

    def _measure(self, running: JobProcess, tree: Sequence[psutil.Process], seconds: float) -> None:
        """Measure a job's memory, and stop it above the limit."""
        now, bound = time.perf_counter(), at_most(tree)
        noted = running.bounds.get(running.phase, 0)
        if bound <= min(self._memory, noted * _GROWN) and now - running.walked < _WALK_SECONDS:
            return
        held = memory(tree)  # the system walks over every page that is mapped, and the job waits meanwhile
        running.walked = now
        running.bounds[running.phase] = max(noted, min(bound, at_most(tree)))  # what went on the way was not seen
        running.peaks[running.phase] = max(held, running.peaks.get(running.phase, 0))
        if held > self._memory:
            text = f"stopped at {held / GIB:.3g} GiB of memory: the limit is {self._memory / GIB:.3g} GiB"
            running.outcome = _without(running, "out-of-memory", text, seconds)

    def _hear(self, running: JobProcess, seconds: float) -> Outcome | None:
        """Read the worker's messages; the outcome if they hold one."""
        try:
            for message in running.reader.messages():
                if message.get("kind") == "answer":
                    return _outcome(running, Answer.model_validate(message), seconds)
                self._pass_on(running, Progress.model_validate(message))
                running.clock.said(time.perf_counter())
                running.said += 1
                if running.said > allowed(seconds):
                    return _without(running, "protocol", "it says where it is more often than a run can hear", seconds)
        except WireError as error:
            return _without(running, "protocol", f"the worker process sent what is no message: {error}", seconds)
        except ValidationError:
            return _without(running, "protocol", "the worker process sent what is no answer", seconds)
        except EOFError:
            running.silent = True
        return None

    def _pass_on(self, running: JobProcess, told: Progress) -> None:
        running.phase = phase_of(told.stage, running.phase, told.total)
        shown = running.phase if running.job.restricted else told.stage
        self._notify(running.job.name, shown, told.done, told.total)


def _serve() -> None:
    """Start the fork server, deaf to Ctrl-C, unless it is there."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ensure_running()
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


def _outcome(running: JobProcess, answer: Answer, seconds: float) -> Outcome:
    job = running.job
    running.phase = answer.phase or running.phase
    if answer.code is None:
        value = TypeAdapter(job.answer).validate_python(answer.value)
        return Outcome("ok", value, None, None, None, seconds, running.clock.cpu, peaks=dict(running.peaks))
    return _without(running, answer.code, answer.reason or withheld(answer.code), seconds)


def _died(running: JobProcess, seconds: float) -> Outcome:
    code = running.process.exitcode
    cause = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
    if code == -signal.SIGBUS:  # of a file in memory whose page the disk cannot take, or give
        return _without(running, "disk", f"the worker process died: {cause} (a full disk?)", seconds)
    hint = " (out of memory?)" if code == -signal.SIGKILL else ""
    return _without(running, "died", f"the worker process died: {cause}{hint}", seconds)


def _without(running: JobProcess, code: Code, text: str, seconds: float) -> Outcome:
    """An outcome without a value; the text is withheld for restricted data."""
    job = running.job
    heard = code == "timed-out" or (code in ABSENT and job.heard)  # a job has no part in what is said of its time
    said = text if not job.restricted or heard else withheld(code)
    return Outcome(
        status_of(code), None, code, said, running.phase, seconds, running.clock.cpu, peaks=dict(running.peaks)
    )
