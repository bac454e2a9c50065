"""Processes that start at once: copies of the fork server of the test session, which has imported torch and the bench.

Each is a process of its own, with its own folder, variables, session and descriptors, and nothing of the test is in it.
How the true one is started (its command line, Python's and torch's imports, a sandbox) it does not show: for that,
tests start the true one.
"""

from __future__ import annotations

import multiprocessing.process
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from bench.runs.local_engine import LocalEngine


class Forked:
    """As much of `subprocess.Popen` as rooms and tests use, for a command of Python's with `-m MODULE` or `-c CODE`.

    What it prints goes to the file `stdout`, errors too; or, where that is no file, to where the fork server's goes.
    """

    def __init__(
        self, command: Sequence[str], *, pass_fds: Sequence[int] = (), cwd: Path | None = None,
        env: Mapping[str, str] | None = None, stdout: IO[bytes] | int | None = None, **more: Any,
    ) -> None:  # fmt: skip
        self._command = list(command)
        ends = [Connection(os.dup(number)) for number in pass_fds]  # what can be handed over
        shown = None if stdout is None or isinstance(stdout, int) else Connection(os.dup(stdout.fileno()))
        told = (self._command, ends, list(pass_fds), shown, cwd or Path.cwd(), dict(os.environ if env is None else env))
        self._process = _context().Process(target=_work, args=told)
        self._process.start()
        multiprocessing.process._children.discard(self._process)  # type: ignore[attr-defined]  # not awaited at the end
        self.pid = int(self._process.pid)

    def poll(self) -> int | None:
        return self._process.exitcode  # type: ignore[no-any-return]

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._command, timeout or 0)
        return int(self._process.exitcode)

    def kill(self) -> None:
        self._process.kill()

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _context() -> Any:
    """That of every run, so that one fork server serves all."""
    return LocalEngine(jobs=1, memory=0, notify=print)._context


def quicken(put: Callable[[str, object], None]) -> None:
    """Have rooms start at once, and who describes or checks plug-ins; a sandbox, and what is in it, starts as ever.

    Args:
        put: Gives a name within a module a value, as `MonkeyPatch.setattr` does.
    """
    quick = SimpleNamespace(**{**vars(subprocess), "Popen": _begun})
    put("bench.isolation.room.subprocess", quick)
    put("bench.plugins.interview.subprocess", quick)
    put("bench.plugins.interview.why_not", lambda: "described by a test that is not about it")
    put("bench.plugins.interview.UNCONFINED", ContextVar("accepted", default=True))
    put("bench.conformance.isolated_check.multiprocessing", SimpleNamespace(get_context=lambda method: _context()))


def _begun(command: Sequence[str], **more: Any) -> Forked | subprocess.Popen[bytes]:
    return Forked(command, **more) if command[0] == sys.executable else subprocess.Popen(command, **more)


def _work(
    command: Sequence[str], ends: Sequence[Connection], numbers: Sequence[int], shown: Connection | None, cwd: Path,
    variables: Mapping[str, str],
) -> None:  # fmt: skip
    os.setsid()
    for stream in (1, 2) if shown is not None else ():
        os.dup2(shown.fileno(), stream)  # type: ignore[union-attr]
    for end, number in zip(ends, numbers, strict=True):
        os.dup2(end.fileno(), number, inheritable=True)
    _cut_off({0, 1, 2, *numbers})
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(variables)
    sys.orig_argv = list(command)
    at = next(number for number, word in enumerate(command) if word in ("-m", "-c"))
    given, *words = command[at + 1 :]
    sys.argv = [given, *words]
    if command[at] == "-c":
        exec(given, {"__name__": "__main__"})
        return
    sys.modules.pop(given, None)  # or runpy warns
    runpy.run_module(given, run_name="__main__", alter_sys=True)


def _cut_off(kept: set[int]) -> None:
    """Leave nothing else open: what a plug-in writes into the pipes of the fork server would end every other test."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        if number not in kept and number != nowhere:
            try:
                os.fstat(number)
            except OSError:  # that of the list itself is closed by now
                continue
            os.dup2(nowhere, number, inheritable=False)
