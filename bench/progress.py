"""Progress of long-running code, through the `bench.progress` logger."""

from __future__ import annotations

__figures__ = False
__messages__ = ("report", "stage")

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("bench.progress")


def stage(name: str) -> None:
    """Begin a stage; a later failure is recorded under its name."""
    LOGGER.info("%s", name)


def report(what: str, done: int, total: int) -> None:
    """Report that `done` of `total` steps of the stage are done."""
    LOGGER.info("%s %d/%d", what, done, total)


SMALLER = "the device's memory ran out, rows at a time from now on, of those before:"


def smaller(now: int, before: int) -> None:
    """Report smaller batches because the device's memory ran out; records keep it."""
    report(SMALLER, now, before)


AGAIN = "made again, for the disk has no room to keep it"


class Forwarder(logging.Handler):
    """Passes each message to `send(name, done, total)`; a stage sends 0, 0."""

    def __init__(self, send: Callable[[str, int, int], None]) -> None:
        super().__init__(logging.INFO)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        """Forward one message."""
        args = record.args if isinstance(record.args, tuple) else ()
        if len(args) == 3 and isinstance(args[1], int) and isinstance(args[2], int):
            self._send(str(args[0]), args[1], args[2])
        else:
            self._send(record.getMessage(), 0, 0)


@contextmanager
def forward_progress(send: Callable[[str, int, int], None]) -> Iterator[None]:
    """Pass the messages of the block to `send`, as `Forwarder` does."""
    handler, level = Forwarder(send), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
