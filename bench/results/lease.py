"""Leases: who is at work on something, among processes that share nothing but a folder.

A lease on NAME is a file NAME.TURN with its holder's words, which the holder touches while it works. Its turn is made
with O_EXCL, so that one alone has it; when its heart has stopped for as long as it says, by the file system's own
clock, anybody may make the next turn. No turn is removed but by who is through with NAME: so nobody takes a living
holder's lease for a dead one's, however slow it is. Whoever holds the highest turn holds the lease.

A lease saves double work. That work is done once is up to what it comes to: a holder that was taken for dead is not.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from bench.results import process_id
from bench.results.heartbeat import BEAT_SECONDS, file_time, touched

Told = Mapping[str, JsonValue]
MAKER, SECONDS = "maker", "seconds"
DEFAULT_SECONDS = 120.0
_GIVEN_BACK, _TOLD_TO_STOP = 24 * 3600.0, 2 * 24 * 3600.0
"""Times of leases that were given back: days after the epoch, for some file systems take its start for now."""


@dataclass(frozen=True)
class Lease:
    """A lease that this process was given."""

    folder: Path
    name: str
    turn: int
    lost: int = 0
    """Of the turns before, those whose holders were lost or gave up, and were not told to stop."""

    @property
    def path(self) -> Path:
        """The file that it touches while it works."""
        return self.folder / f"{self.name}.{self.turn}"

    def is_held(self) -> bool:
        """Whether nobody has taken it for a dead one's in the meantime. Raises OSError where that cannot be told."""
        return max(turns(self.folder).get(self.name, [0])) == self.turn

    def kept(self, seconds: float) -> AbstractContextManager[None]:
        """Touch it while a block runs, often enough for a holder that may be silent for so many seconds."""
        return touched(self.path, min(BEAT_SECONDS, seconds / 6))

    def give_back(self, *, told_to_stop: bool = False) -> None:
        """Anybody may have the next turn at once; that there was this one, and why it ended, is not forgotten."""
        when = _TOLD_TO_STOP if told_to_stop else _GIVEN_BACK
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path, (when, when))

    def settle(self) -> None:
        """The work is done, and what it came to can be seen by all: no turn is left."""
        for turn in range(1, self.turn + 1):
            (self.folder / f"{self.name}.{turn}").unlink(missing_ok=True)


@dataclass(frozen=True)
class Holder:
    """What can be read of a lease.

    Args:
        turn: The highest.
        told: The holder's words; empty while they are being written.
        silent: Seconds since it was last touched.
        lost: Whether anybody may take it.
        given_back: Whether its holder said so.
    """

    turn: int
    told: Told
    silent: float
    lost: bool
    given_back: bool


def claim(folder: Path, name: str, told: Told, *, seconds: float) -> Lease | None:
    """The lease on `name`, or None where somebody has it.

    Args:
        folder: Of leases; it must be there.
        name: What is to be worked on.
        told: What others may read of the holder.
        seconds: For how long the holder may be silent before another takes its turn.
    """
    before = turns(folder).get(name, [])
    if before and not holder(folder, name, before, file_time(folder)).lost:
        return None
    found = Lease(
        folder, name, max(before, default=0) + 1, sum(not _told_to_stop(folder, name, each) for each in before)
    )
    content = json.dumps({**told, MAKER: process_id.own_name(), SECONDS: seconds}).encode()
    try:
        handle = os.open(found.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        if found.is_held():
            return found
    except (
        BaseException
    ):  # a full disk, say: a turn without words would keep others away, and count as one that was lost
        found.path.unlink(missing_ok=True)
        raise
    found.path.unlink(missing_ok=True)  # turns were made and forgotten since we looked
    return None


def _told_to_stop(folder: Path, name: str, turn: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return (folder / f"{name}.{turn}").stat().st_mtime == _TOLD_TO_STOP
    return False


def turns(folder: Path) -> dict[str, list[int]]:
    """The turns of every lease in a folder."""
    found: dict[str, list[int]] = {}
    for entry in os.scandir(folder):
        name, _, turn = entry.name.rpartition(".")
        if name and turn.isdigit() and not name.startswith("."):
            found.setdefault(name, []).append(int(turn))
    return found


def holder(folder: Path, name: str, known: list[int], now: float) -> Holder:
    """Who has a lease, of which some turns are known.

    Args:
        folder: Of leases.
        name: Of the lease.
        known: Its turns.
        now: What the file system says that the time is.
    """
    turn = max(known)
    path = folder / f"{name}.{turn}"
    try:
        touched, told = path.stat().st_mtime, _told(path)
    except FileNotFoundError:  # settled since it was listed: who claims it now will see that
        return Holder(turn, {}, 0.0, lost=False, given_back=False)
    silent, given_back = now - touched, touched in (_GIVEN_BACK, _TOLD_TO_STOP)
    patience = told.get(SECONDS)
    most = float(patience) if isinstance(patience, int | float) else DEFAULT_SECONDS
    gone = process_id.is_gone(str(told.get(MAKER)))
    return Holder(turn, told, silent, lost=given_back or gone or silent > most, given_back=given_back)


def _told(path: Path) -> dict[str, JsonValue]:
    try:
        found = json.loads(path.read_bytes())
    except ValueError:  # half written
        return {}
    return cast("dict[str, JsonValue]", found) if isinstance(found, dict) else {}
