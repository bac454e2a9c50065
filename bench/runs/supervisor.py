"""The process above a worker: it keeps the log and ends descendants."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
from multiprocessing.connection import Connection, wait
from pathlib import Path

import psutil

from bench.results.disk_errors import is_disk_failure
from bench.runs.engine import Job
from bench.runs.process_tree import adopt_orphans, below, end_below
from bench.runs.worker import work

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
        self._file = _opened(path)
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
        os.close(self._file)


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
