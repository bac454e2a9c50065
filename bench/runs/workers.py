"""Jobs in worker processes of their own: an exception, a hang or a memory blow-up in one does not touch the others."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import psutil

from bench import shadowing
from bench.contract.seal import ContractError
from bench.contract.source import DataError
from bench.plugins.spec import UsageError
from bench.progress import LOGGER, Forwarder
from bench.runs.backend import Job, Outcome
from bench.shadowing import ShadowedError
from bench.types import NotApplicable
from bench.workbench.machine import cores

_POLL_SECONDS = 0.2
_LINGER_SECONDS = 5.0


@dataclass(eq=False)
class _Running:
    job: Job
    process: BaseProcess
    pipe: Connection
    started: float
    phase: str = "start"


class Workers:
    """At most `jobs` worker processes on this machine (a `bench.runs.backend.Backend`).

    Args:
        jobs: How many run at a time.
        memory: Bytes a worker may hold before it is stopped.
        notify: Called with (job name, stage, done, total) as workers report.
    """

    def __init__(self, *, jobs: int, memory: int, notify: Callable[[str, str, int, int], None]) -> None:
        self._jobs, self._memory, self._notify = jobs, memory, notify
        methods = multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            # Or else the server looks for modules in the working folder first: a bench.py there would end every worker.
            os.environ.setdefault("PYTHONSAFEPATH", "1")
            self._context.set_forkserver_preload(["bench.runs.tasks"])
        self._waiting: deque[Job] = deque()
        self._running: list[_Running] = []

    def close(self) -> None:
        """Stop what is running, and start nothing more."""
        self._waiting.clear()
        for running in self._running:
            _kill(running.process)
        self._running.clear()

    def submit(self, job: Job) -> None:
        """Queue a job."""
        self._waiting.append(job)

    def next(self) -> tuple[Job, Outcome] | None:
        """The next finished job, or None when nothing is queued or running."""
        while self._waiting or self._running:
            self._start()
            wait([running.pipe for running in self._running], timeout=_POLL_SECONDS)
            for running in self._running:
                outcome = self._look(running)
                if outcome is not None:
                    self._running.remove(running)
                    running.pipe.close()
                    return running.job, outcome
        return None

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._jobs:
            if any(running.job.alone for running in self._running):
                return
            job = next((job for job in self._waiting if not job.alone), None)
            if job is None:
                if self._running:
                    return
                job = self._waiting[0]
            self._waiting.remove(job)
            threads = max(1, cores() // (1 if job.alone else self._jobs))
            ours, theirs = self._context.Pipe()
            process = self._context.Process(target=_work, args=(job, theirs, threads))  # type: ignore[attr-defined]
            process.start()
            theirs.close()
            self._running.append(_Running(job, process, ours, time.perf_counter()))

    def _look(self, running: _Running) -> Outcome | None:
        seconds = time.perf_counter() - running.started
        try:
            while running.pipe.poll():
                kind, *rest = running.pipe.recv()
                if kind == "progress":
                    stage, done, total = rest
                    running.phase = running.phase if total else stage
                    self._notify(running.job.name, stage, done, total)
                else:
                    value, reason = rest
                    _end(running.process)
                    return Outcome(kind, value, reason, None if kind == "ok" else running.phase, seconds)
        except (EOFError, ConnectionResetError):
            _end(running.process)
            code = running.process.exitcode
            cause = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
            hint = " (out of memory?)" if code == -signal.SIGKILL else ""
            return Outcome("failed", None, f"the worker process died: {cause}{hint}", running.phase, seconds)
        if seconds > running.job.timeout:
            _kill(running.process)
            return Outcome("timed-out", None, f"stopped after {running.job.timeout:g} s", running.phase, seconds)
        held = _resident(running.process.pid)
        if held > self._memory:
            _kill(running.process)
            reason = f"stopped at {held / 2**30:.1f} GiB of memory: the limit is {self._memory / 2**30:.1f} GiB"
            return Outcome("failed", None, reason, running.phase, seconds)
        return None


def _resident(pid: int | None) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def _kill(process: BaseProcess) -> None:
    """Stop a worker and whatever it started."""
    _end_children(process.pid)
    process.kill()
    process.join()


def _end_children(pid: int | None) -> None:
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()


def _end(process: BaseProcess) -> None:
    """Wait for a worker that has answered; stop it if something of it lingers."""
    process.join(timeout=_LINGER_SECONDS)
    if process.is_alive():
        _kill(process)


def _work(job: Job, pipe: Connection, threads: int) -> None:
    """In the worker: do the job and send what became of it."""
    import torch

    job.log.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(log, stream.fileno())
    os.close(log)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_run, daemon=True).start()
    torch.set_num_threads(threads)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    LOGGER.addHandler(Forwarder(lambda stage, done, total: pipe.send(("progress", stage, done, total))))
    try:
        shadowing.guard()
        pipe.send(("ok", job.work(job.argument), None))
    except NotApplicable as reason:
        pipe.send(("not-applicable", None, str(reason)))
    except MemoryError as error:
        pipe.send(("failed", None, f"out of memory: {error}"))
    except (ContractError, DataError, UsageError) as error:  # ours: the text is complete
        pipe.send(("failed", None, str(error)))
    except ShadowedError as error:
        print(error, file=sys.stderr)
        names = ", ".join(error.names)
        pipe.send(("failed", None, f"other modules than Veil Bench's answer to {names}: the log says where they lie"))
    except Exception as error:  # whatever an adapter raises becomes its own outcome
        traceback.print_exc()
        pipe.send(("failed", None, f"{type(error).__name__}: {error}"))


def _die_with_run() -> None:
    """End this worker and what it started once the run is gone. (Its parent by pid is the fork server.)"""
    run = multiprocessing.parent_process()
    if run is not None:
        run.join()
        _end_children(os.getpid())
        os._exit(1)
