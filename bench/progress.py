"""How long-running code says where it is: through the `bench.progress` logger, with no display and no callback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("bench.progress")


def stage(name: str) -> None:
    """Say that a new stage begins; a later failure is recorded under this name."""
    LOGGER.info("%s", name)


def report(what: str, done: int, total: int) -> None:
    """Say that `done` of `total` steps of the present stage are behind us."""
    LOGGER.info("%s %d/%d", what, done, total)


SMALLER = "the device's memory ran out, rows at a time from now on, of those before:"


def smaller(now: int, before: int) -> None:
    """Say that the device's memory ran out, so that fewer rows at a time are worked on; records hold that it did."""
    report(SMALLER, now, before)


AGAIN = "made again, for the disk has no room to keep it"


class Forwarder(logging.Handler):
    """Hands every `stage` and `report` to `send(name, done, total)`; done and total are 0 for a new stage."""

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
def told(send: Callable[[str, int, int], None]) -> Iterator[None]:
    """What is said within the block goes to `send`, as with `Forwarder`."""
    handler, level = Forwarder(send), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
