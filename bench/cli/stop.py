"""TERM and HUP stop a command as Ctrl-C does: workers are ended, and what was finished is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None)


class Stopped(KeyboardInterrupt):
    """A signal asked the command to stop; `code` is the exit code that tells which."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.code = 128 + number


@contextmanager
def heeded() -> Iterator[None]:
    """Raise `Stopped` on TERM and HUP; one that is ignored (under nohup) or handled by others stays so.

    After the first they are ignored: the ending of workers is not to be cut short. Ctrl-C and kill -9 can.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():  # Python sets handlers there alone
        before = {each: signal.SIG_DFL for each in SIGNALS if signal.getsignal(each) is signal.SIG_DFL}
    for each in before:
        signal.signal(each, _stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    for each in SIGNALS:
        if signal.getsignal(each) is _stop:
            signal.signal(each, signal.SIG_IGN)
    raise Stopped(number)
