"""What a run came to, for whoever asked for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from bench.results.reason import Code
from bench.results.records import Record
from bench.runs.plan import Condition


@dataclass
class Summary:
    """What a run came to: all records of its cells, and how many were computed now.

    Args:
        records: Those that were computed now, and those that were there.
        computed: How many were computed now.
        kept: Counts by their condition those that were not computed now.
        unopened: Data that did not open, and why; of them there are no records but those of earlier runs.
        planned: How many records there would be, had all gone well.
        stopped: The signal or Ctrl-C that ended the run before it was through; None where it is through.
    """

    records: list[Record] = field(default_factory=list)
    computed: int = 0
    kept: Counter[Condition] = field(default_factory=Counter)
    unopened: dict[str, Code] = field(default_factory=dict)
    planned: int = 0
    stopped: KeyboardInterrupt | None = None

    @property
    def failures(self) -> list[Record]:
        """The records that say failed or timed out."""
        return [record for record in self.records if record.status in ("failed", "timed-out")]

    def add(self, other: Summary) -> None:
        """Count what another part of the same run came to."""
        self.records += other.records
        self.computed += other.computed
        self.kept += other.kept
        self.unopened |= other.unopened
        self.planned += other.planned
        self.stopped = self.stopped or other.stopped
