"""The worker process: does a job, reports progress, sends the answer."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

from pydantic import JsonValue, TypeAdapter

from bench import shadowing
from bench.progress import LOGGER, forward_progress
from bench.results.reason import Phase, phase_of, status_of
from bench.runs.answers import MESSAGE_CAP, MOST_STEPS, Answer, Progress, allowed
from bench.runs.engine import Job
from bench.runs.failure import code_of, text_of
from bench.runs.process_tree import die_with_parent
from bench.shadowing import ShadowedError
from bench.wire.message import WireError, send

SAY_SECONDS = 0.1
_SHARE = 0.9  # of what the run lets a worker say: its clock started earlier, and may run slower


def work(job: Job, answers: Connection, printer: Connection, nexts: Connection, threads: int) -> None:
    """Do the job; output goes to `printer`, messages to `answers`.

    A worker that is kept then does the jobs from `nexts`, until that pipe is closed.
    """
    import torch

    from bench.determinism import register

    die_with_parent()
    for stream in (sys.stdout, sys.stderr):
        os.dup2(printer.fileno(), stream.fileno())
    printer.close()
    _cut_off(keep=(answers.fileno(), nexts.fileno()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    register()
    LOGGER.propagate = False
    _do(job, answers.fileno())
    while job.keeps:
        gc.collect()
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.empty_cache()
        try:
            job = nexts.recv()
        except EOFError:
            return
        _do(job, answers.fileno())


def _do(job: Job, pipe: int) -> None:
    teller = _Teller(pipe)
    with forward_progress(teller.progress):
        answer = _answer(job)
    for stream in (sys.stdout, sys.stderr):  # what stayed behind would be in the next job's log, or lost
        with contextlib.suppress(Exception):  # a plug-in may have put anything in its place
            stream.flush()
    try:
        teller.send(answer.model_copy(update={"phase": teller.phase}))
    except WireError as error:
        reason = f"what the job gave cannot be sent: {error}"
        teller.send(Answer(status="failed", code="contract", reason=reason, phase=teller.phase))


def _cut_off(keep: Sequence[int]) -> None:
    """Cut this process off from inherited pipes and its process group.

    What a job wrote into the pipes of the fork server, say, would end every other job.
    """
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        if descriptor not in (1, 2, *keep, nowhere):
            with contextlib.suppress(OSError):  # that of the list itself is closed by now
                os.fstat(descriptor)
                os.dup2(nowhere, descriptor, inheritable=False)
    os.close(nowhere)


class _Teller:
    """Sends messages, and skips steps that follow each other closely."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._began = self._at = time.monotonic()
        self._sent, self._last = 0, ("", False)
        self.phase: Phase = "start"

    def progress(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        self.phase = phase_of(stage, self.phase, total)
        last = (stage, bool(total))
        often = last == self._last and now - self._at < SAY_SECONDS
        if often or self._sent >= _SHARE * allowed(now - self._began):
            return
        self._at, self._last = now, last
        self._sent += 1
        done, total = (min(max(0, count), MOST_STEPS) for count in (done, total))
        self.send(Progress(stage=stage, done=done, total=total))

    def send(self, message: Progress | Answer) -> None:
        content = cast("dict[str, JsonValue]", message.model_dump(mode="json"))
        send(self._descriptor, content, MESSAGE_CAP)


def _answer(job: Job) -> Answer:
    """The answer of a job, if plug-ins raise or not."""
    try:
        shadowing.guard()
        value = TypeAdapter(job.answer).dump_python(job.work(job.argument), mode="json", warnings="error")
        return Answer(status="ok", value=value)
    except ShadowedError as error:
        print(error, file=sys.stderr)
        names = ", ".join(error.names)
        text = f"other modules than Veil Bench's answer to {names}: the log says where they lie"
        return Answer(status="failed", code="shadowed", reason=text)
    except BaseException as error:
        _print(error)
        code = code_of(error)
        reason = None if job.restricted and not isinstance(error, job.heard) else text_of(error, code)
        status = status_of(code)
        assert status != "timed-out"  # said by those who wait alone
        return Answer(status=status, code=code, reason=reason)


def _print(error: BaseException) -> None:
    try:
        traceback.print_exception(error)
    except Exception:
        print("an exception that cannot be printed", file=sys.stderr)
