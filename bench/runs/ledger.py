"""What a run must know of others that do jobs of the same run at the same time."""

from __future__ import annotations

from typing import Protocol


class Ledger(Protocol):
    """What became of jobs elsewhere."""

    shared: bool

    def settled(self, job: str) -> bool:
        """Whether nothing is left to do of an evaluation of that name."""

    def settle(self, job: str, *, failed: bool = False) -> None:
        """Say that nothing is left to do of an evaluation that no job was submitted for."""

    def at_a_time(self) -> int:
        """How many jobs run on this machine at a time, as far as the run knows."""


class Alone:
    """The ledger of a run that does all of its jobs itself, so many at a time."""

    shared = False

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def settled(self, job: str) -> bool:
        """As in `Ledger`: nobody else did it."""
        return False

    def settle(self, job: str, *, failed: bool = False) -> None:
        """As in `Ledger`: nobody asks."""

    def at_a_time(self) -> int:
        """As in `Ledger`."""
        return self._jobs
