"""Groups of rooms of other authors, one alive at a time.

A room that has seen private rows could tell one that encodes queries or decodes predictions what it has learned, by
whatever two processes of one machine share (group mutual exclusion; Joung, PODC 1998). Within a job, opening a room
ends those of other groups. Between the jobs of a machine, locks on a file for each group do the same.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, TypeVar, get_args

from bench.progress import stage
from bench.sandbox import empty_caches

Part = Literal["fit", "release", "query", "decode"]
"""The work of a room. An attack's room belongs to `release`: it knows private rows as well."""
LOOK_SECONDS = 0.1
LONGEST = 16  # bytes of a part's name; the gate holds the last one


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
    """

    def __init__(self, folder: Path | None, *, sandbox: bool = False) -> None:
        self._folder, self._sandbox = folder, sandbox
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
        """Wait until no other job has rooms of another part."""
        if self._folder is None or part == self._part:
            return
        self.leave()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        waits = False
        while (lock := _entered(self._folder, part, sandbox=self._sandbox)) is None:
            if not waits:
                stage("wait for rooms of other jobs")
                waits = True
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


def _entered(folder: Path, part: Part, *, sandbox: bool) -> int | None:
    """A shared lock of that part; None if another is locked."""
    gate = _opened(folder / "gate")
    fcntl.flock(gate, fcntl.LOCK_EX)
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
        for descriptor in (*others, gate):
            os.close(descriptor)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
