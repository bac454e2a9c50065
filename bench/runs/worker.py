"""The worker process: does a job, reports progress, sends the answer."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import multiprocessing
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import cast

import psutil
from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from bench import shadowing
from bench.contract.seal import ContractError
from bench.contract.source import DataError
from bench.disk.disk_errors import is_disk_failure
from bench.isolation import DiedError, OutsideError, RefusedError
from bench.plugins.spec import UsageError
from bench.progress import LOGGER, forward_progress
from bench.results import log_file
from bench.results.reason import Code, Phase, phase_of, status_of
from bench.room_side import refuse_debugger
from bench.runs.engine import Job
from bench.runs.tasks import MESSAGE_CAP, MOST_STEPS, Answer, Progress, allowed
from bench.shadowing import ShadowedError
from bench.types import NotApplicable
from bench.wire.message import WireError, send
from bench.wire.text import named, said

SAY_SECONDS = 0.1
_SHARE = 0.9  # of what the run lets a worker say: its clock started earlier, and may run slower


def work(job: Job, answers: Connection, printer: Connection, nexts: Connection, threads: int) -> None:
    """Do the job; output goes to `printer`, messages to `answers`.

    A worker that is kept then does the jobs from `nexts`, until that pipe is closed.
    """
    import torch

    from bench.determinism import register

    end_with_parent(signal.SIGKILL)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(printer.fileno(), stream.fileno())
    printer.close()
    _cut_off(keep=(answers.fileno(), nexts.fileno()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.breakpointhook = refuse_debugger
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


_OTHER: Code = "error"
_CODES: tuple[tuple[type[Exception], Code], ...] = (
    (RefusedError, "refused"),
    (NotApplicable, "not-applicable"),
    (MemoryError, "out-of-memory"),
    (ContractError, "contract"),
    (DiedError, "died"),
    (ValidationError, "contract"),
    (PydanticSerializationError, "contract"),
    (DataError, "data"),
    (UsageError, "usage"),
)


def code_of(error: BaseException) -> Code:
    """The code of an exception.

    >>> code_of(NotApplicable("no labels")), code_of(KeyError("patient 7"))
    ('not-applicable', 'error')
    """
    code = next((code for kind, code in _CODES if isinstance(error, kind)), _OTHER)
    return "disk" if code == _OTHER and not isinstance(error, OutsideError) and is_disk_failure(error) else code


def text_of(error: BaseException, code: Code) -> str:
    """The text of an exception, which may quote the data behind it."""
    if code == "out-of-memory":
        return f"out of memory: {said(error)}"
    return named(error) if code in ("error", "disk") and not isinstance(error, OutsideError) else said(error)


LOG_BYTES = 8 * 2**20
_POLL_SECONDS = 0.05
_CHUNK = 1 << 16


def supervise(job: Job, answers: Connection, nexts: Connection, threads: int) -> None:
    """Do a job in a child process, and end as it ends.

    A worker that is kept is handed its next job here, once the log is that job's.
    """
    adopt_orphans()
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tree, log = psutil.Process(), _Log(job.log)
    printed, printer = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    given, giver = multiprocessing.Pipe(duplex=False)
    worker = context.Process(target=work, args=(job, answers, printer, given, threads))  # type: ignore[attr-defined]
    worker.start()
    pid = worker.pid
    assert pid is not None
    for end in (printer, answers, given):
        end.close()
    run = multiprocessing.parent_process()
    sentinels = [] if run is None else [run.sentinel]
    os.set_blocking(printed.fileno(), False)
    status: int | None = None
    heard: list[object] = [printed, nexts]
    while status is None:
        ready = wait([*heard, *sentinels], timeout=_POLL_SECONDS)  # type: ignore[list-item]
        if sentinels and sentinels[0] in ready:  # the run is gone
            end_below(tree)
            os._exit(1)
        if printed in ready and not log.take(printed.fileno()):
            heard.remove(printed)
        if nexts in ready:
            try:
                following = nexts.recv()
            except EOFError:  # the run asks for no more
                heard.remove(nexts)
                continue
            while log.take(printed.fileno()):
                pass
            log.close()
            log = _Log(following.log)
            with contextlib.suppress(OSError):  # the worker is about to be found dead
                giver.send(following)
        status = _reap(pid)
    while below(tree):
        end_below(tree)
        _reap(pid)
    while log.take(printed.fileno()):
        pass
    log.close()
    _end_as(status)


def _reap(worker: int) -> int | None:
    """Reap ended children; the worker's wait status if it is among them."""
    status = None
    while True:
        try:
            pid, found = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if not pid:
            return status
        if pid == worker:
            status = found


def _end_as(status: int) -> None:
    """End as the worker did, with its exit code or signal."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
    os.kill(os.getpid(), -code)
    os._exit(128 - code)  # of a signal that ends no process


class _Log:
    """A worker's output in a private file of at most `LOG_BYTES`."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, _opened(path)
        if os.fstat(self._file).st_size >= LOG_BYTES:  # of earlier runs
            os.ftruncate(self._file, 0)
        self._left = LOG_BYTES - os.fstat(self._file).st_size

    def take(self, printed: int) -> bool:
        """Take what is there to be read; whether there may be more."""
        try:
            found = os.read(printed, _CHUNK)
        except BlockingIOError:
            return False
        if self._left > 0:
            kept = found[: self._left]
            self._left -= len(kept)
            if self._left == 0:
                kept += f"\n[cut here: a log takes at most {LOG_BYTES} bytes]\n".encode()
            with contextlib.suppress(OSError):  # a full disk costs the log, and not the figures
                os.write(self._file, kept)
        return bool(found)

    def close(self) -> None:
        log_file.close(self._path, self._file)


def _opened(path: Path) -> int:
    """A log to write to; `/dev/null` if the disk takes none."""
    before = os.umask(0o077)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        found = os.open(path, flags, 0o600)
        os.fchmod(found, 0o600)
        return found
    except OSError as error:
        if not is_disk_failure(error):
            raise
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    finally:
        os.umask(before)


_PDEATHSIG, _CHILD_SUBREAPER = 1, 36  # of <linux/prctl.h>
_ROUNDS = 100


def adopt_orphans() -> None:
    """Adopt descendants whose parent ends, so that none leaves (Linux only)."""
    _prctl(_CHILD_SUBREAPER, 1)


def end_with_parent(number: signal.Signals) -> None:
    """Get a signal when the parent ends (Linux alone)."""
    _prctl(_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def below(root: psutil.Process) -> list[psutil.Process]:
    """Every living descendant of a process, the oldest first."""
    try:
        found = root.children(recursive=True)
    except psutil.Error:
        return []
    return sorted((process for process in found if _lives(process)), key=psutil.Process.create_time)


def end_below(root: psutil.Process, known: Iterable[psutil.Process] = ()) -> None:
    """Kill every descendant of `root` and the known processes, not `root`.

    They are stopped before they are killed: what is stopped starts nothing new while the others are looked for.
    """
    found: set[psutil.Process] = set()
    more = {process for process in known if process != root and _lives(process)}
    for _ in range(_ROUNDS):
        more |= {process for each in (root, *found, *more) for process in below(each)} - found
        if not more:
            break
        for process in more:
            _tell(process, signal.SIGSTOP)
        found |= more
        more = set()
    for process in found:
        _tell(process, signal.SIGKILL)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _tell(process: psutil.Process, what: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error):
        process.send_signal(what)
