"""Several transfers at once: as many as are asked for, each tried again where the network fails, all stopped as one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from bench.transfer.target import StoppedError, TransferError

T = TypeVar("T")
R = TypeVar("R")
TRIES = 3
GIVE_UP = 10


@dataclass(frozen=True)
class Crew:
    """How transfers are made.

    Args:
        jobs: At most so many at once.
        stop: Set where the command is stopped; whoever transfers looks at it.
        pause: Seconds before the second try; the third waits twice as long.
    """

    jobs: int
    stop: threading.Event
    pause: float = 0.5

    def each(self, items: Iterable[T], work: Callable[[T], R], take: Callable[[T, R | TransferError], object]) -> None:
        """Hand what `work` gives for each item to `take`, in this thread; an error after the last try.

        Raises:
            TransferError: So many failed in a row that the other end must be gone.
        """
        waiting, row = iter(items), 0
        with ThreadPoolExecutor(self.jobs, thread_name_prefix="transfer") as threads:
            try:
                # No more in hand than twice the threads: what waits may be many thousands.
                hand = {threads.submit(self._tried, work, item): item for item in islice(waiting, 2 * self.jobs)}
                while hand:
                    for done in _any(hand):
                        item, found = hand.pop(done), done.result()
                        row = row + 1 if isinstance(found, TransferError) else 0
                        take(item, found)
                        if row == GIVE_UP and isinstance(found, TransferError):
                            raise TransferError(f"{GIVE_UP} transfers in a row failed, the last: {found}")
                        hand |= {threads.submit(self._tried, work, more): more for more in islice(waiting, 1)}
            except BaseException:
                self.stop.set()
                threads.shutdown(wait=True, cancel_futures=True)
                raise

    def _tried(self, work: Callable[[T], R], item: T) -> R | TransferError:
        for left in reversed(range(TRIES)):
            try:
                return work(item)
            except TransferError as error:
                if left == 0:
                    return error
            if self.stop.wait(self.pause * (TRIES - left)):
                raise StoppedError
        raise AssertionError


def _any(hand: Iterable[Future[R | TransferError]]) -> set[Future[R | TransferError]]:
    return wait(hand, return_when=FIRST_COMPLETED).done
