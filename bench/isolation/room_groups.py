"""Groups of rooms of other authors, one alive at a time.

A room that has seen private rows could tell one that encodes queries or decodes predictions what it has learned, by
whatever two processes of one machine share (group mutual exclusion; Joung, PODC 1998). Within a job, opening a room
ends those of other groups. Between the jobs of a machine, locks on a file for each group do the same. Jobs wait in a
queue of locked files: one that comes later goes before none of another part. The file of a killed job is not locked.
"""

from __future__ import annotations

import fcntl
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol, TypeVar, get_args

from bench.progress import stage
from bench.sandbox import empty_caches

Part = Literal["fit", "release", "query", "decode"]
"""The work of a room. An attack's room belongs to `release`: it knows private rows as well."""
LOOK_SECONDS, SAY_SECONDS = 0.1, 30.0
WAITS = 5
"""Times of what a job may work, after which it has waited too long."""
TICKET = "waits-"
LONGEST = 16  # bytes of a part's name; the gate holds the last one


class WaitError(Exception):
    """A job has waited too long for rooms of other jobs."""


class Living(Protocol):
    """As much of a room as its group knows."""

    open: bool

    def close(self) -> None:
        """End it."""


AnyRoom = TypeVar("AnyRoom", bound=Living)


class RoomGroup:
    """The living rooms of one job, all of one part.

    Args:
        folder: Holds the locks that the jobs of a machine share; None for this project's own plug-ins, whose rooms may
            live side by side.
        sandbox: They are sandboxes, which the kernel's caches would connect: these are emptied between parts.
        seconds: Longest wait for rooms of other jobs.
    """

    def __init__(self, folder: Path | None, *, sandbox: bool = False, seconds: float = math.inf) -> None:
        self._folder, self._sandbox, self._seconds = folder, sandbox, seconds
        self._part: Part | None = None
        self._lock: int | None = None
        self._rooms: list[Living] = []

    @property
    def takes_turns(self) -> bool:
        """True for rooms of other authors."""
        return self._folder is not None

    def open(self, part: Part, make: Callable[[], AnyRoom]) -> AnyRoom:
        """A new room, after those of other parts have ended."""
        self.enter(part)
        room = make()
        self.admit(room)
        return room

    def admit(self, room: Living) -> None:
        """Count a room that was made before its group entered a part."""
        if self._folder is not None:
            self._rooms = [*(each for each in self._rooms if each.open), room]

    def enter(self, part: Part) -> None:
        """Wait until rooms of other parts have ended, in order.

        Raises:
            WaitError: It took longer than it may.
        """
        if self._folder is None or part == self._part:
            return
        self.leave()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        start, said = time.monotonic(), -math.inf
        with _queued(self._folder, part) as ticket:
            while (lock := _entered(self._folder, part, ticket, sandbox=self._sandbox)) is None:
                now = time.monotonic()
                if now - start > self._seconds:
                    raise WaitError(
                        f"waited {self._seconds:g} s for rooms of other jobs on this machine, which must end before a "
                        f"room of {part} begins: run fewer jobs at once (--jobs); the same command measures what is "
                        f"missing"
                    )
                if now - said >= SAY_SECONDS:
                    stage("wait for rooms of other jobs")  # a job that says nothing is taken for dead
                    said = now
                time.sleep(LOOK_SECONDS)
        self._part, self._lock = part, lock

    def rest(self) -> None:
        """Let other jobs go on if no room is open."""
        if not any(room.open for room in self._rooms):
            self.leave()

    def leave(self) -> None:
        """End the rooms, and let other jobs go on."""
        for room in self._rooms:
            room.close()
        self._rooms.clear()
        if self._lock is not None:
            os.close(self._lock)
        self._part = self._lock = None


@contextmanager
def _gate(folder: Path) -> Iterator[int]:
    """The locked file that holds the last part."""
    gate = _opened(folder / "gate")
    try:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield gate
    finally:
        os.close(gate)


@contextmanager
def _queued(folder: Path, part: Part) -> Iterator[int]:
    """A place in the queue, by its number."""
    with _gate(folder):
        number = max((place for place, _, _ in _tickets(folder)), default=0) + 1
        path = folder / f"{TICKET}{number}-{part}"
        mine = _opened(path)
        fcntl.flock(mine, fcntl.LOCK_EX)
    try:
        yield number
    finally:
        path.unlink(missing_ok=True)
        os.close(mine)


def _tickets(folder: Path) -> Iterator[tuple[int, str, Path]]:
    """Number, part and file of every place in the queue."""
    for path in folder.glob(f"{TICKET}*"):
        number, _, part = path.name.removeprefix(TICKET).partition("-")
        yield int(number), part, path


def _waits(path: Path) -> bool:
    """True if a job stands there; remove a killed job's file."""
    try:
        ticket = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(ticket, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(ticket)


def _entered(folder: Path, part: Part, ticket: int, *, sandbox: bool) -> int | None:
    """A shared lock of that part, or None if others come first."""
    with _gate(folder) as gate:
        if any(place < ticket and other != part and _waits(path) for place, other, path in _tickets(folder)):
            return None
        return _locked(folder, part, gate, sandbox=sandbox)


def _locked(folder: Path, part: Part, gate: int, *, sandbox: bool) -> int | None:
    others: list[int] = []
    try:
        for other in get_args(Part):
            if other != part:
                others.append(_opened(folder / other))
                fcntl.flock(others[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        mine = _opened(folder / part)
        fcntl.flock(mine, fcntl.LOCK_SH)
        before = os.pread(gate, LONGEST, 0)
        if before != part.encode():
            os.ftruncate(gate, 0)
            os.pwrite(gate, part.encode(), 0)
            if before and sandbox:
                empty_caches()
        return mine
    except BlockingIOError:
        return None
    finally:
        for descriptor in others:
            os.close(descriptor)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
