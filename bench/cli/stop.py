"""TERM and HUP stop a command as Ctrl-C does.

Workers are ended; finished results are kept and shown.
"""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = tuple(number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None)


class Stopped(KeyboardInterrupt):
    """A signal asked the command to stop; `code` is its exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.code = 128 + number


def code(stop: KeyboardInterrupt) -> int:
    """The exit code of a stopped command: 128 + signal number."""
    return stop.code if isinstance(stop, Stopped) else 128 + signal.SIGINT


@contextmanager
def heeded() -> Iterator[None]:
    """Raise `Stopped` on TERM and HUP, unless ignored or handled by others.

    After the first they are ignored: neither the ending of workers nor the last table and page are to be cut short.
    Ctrl-C and kill -9 can.
    """
    handlers = {}
    if threading.current_thread() is threading.main_thread():  # Python sets handlers there alone
        handlers = {number: signal.SIG_DFL for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL}
    for number in handlers:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    for other in SIGNALS:
        if signal.getsignal(other) is _stop:
            signal.signal(other, signal.SIG_IGN)
    if number == getattr(signal, "SIGHUP", None):
        _let_the_terminal_go()
    raise Stopped(number)


def _let_the_terminal_go() -> None:
    """Drop output to the terminal, which is gone: writing would fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        with suppress(OSError):
            if stat.S_ISCHR(os.fstat(descriptor).st_mode):
                os.dup2(nowhere, descriptor)
    os.close(nowhere)
