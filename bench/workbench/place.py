"""Folders and memory on this machine."""

from __future__ import annotations

__figures__ = False

from dataclasses import dataclass
from pathlib import Path

from bench.memory.memory_budget import Budget
from bench.results.results import Results


@dataclass(frozen=True)
class Place:
    """Folders and memory on this machine; no figure depends on them.

    Args:
        results: What runs leave behind.
        cache: Folder of prepared data and extracted features.
        roots: Folders above raw data.
        memory: Bytes that a job may hold, all of its processes together; None for no bound.
    """

    results: Results
    cache: Path
    roots: tuple[Path, ...]
    memory: int | None = None

    @property
    def budget(self) -> Budget | None:
        """The rows' share of a job's memory; None if unbounded."""
        return None if self.memory is None else Budget(self.memory, self.results.rooms.parent)
