"""Whether somebody asked the command to stop, or a plug-in raised the same by itself."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)))


@contextmanager
def heard() -> Iterator[Callable[[BaseException], bool]]:
    """Tells whether a signal raised an exception of the block: else a KeyboardInterrupt, say, is the code's own.

    Handlers work as before. Of the first signal on they are those from before the block.

    >>> with heard() as signalled:
    ...     try:
    ...         raise KeyboardInterrupt
    ...     except KeyboardInterrupt as error:
    ...         print(signalled(error))
    False
    """
    came = False
    before: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {}

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        handler = before[signal.Signals(number)]
        restore()
        handler(number, frame)

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    if threading.current_thread() is threading.main_thread():  # signals reach no other
        for number in SIGNALS:
            if callable(handler := signal.getsignal(number)) and not isinstance(handler, signal.Handlers):
                before[number] = handler
                signal.signal(number, note)
    try:
        yield lambda error: came and not isinstance(error, Exception)
    finally:
        restore()
