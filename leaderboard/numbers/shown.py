"""A board as its numbers are taken from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from leaderboard.columns import Column
from leaderboard.decisions import created, snapshot
from leaderboard.intake import Intake
from leaderboard.numbers.score_lines import score_lines
from leaderboard.numbers.tables import TablePart, in_parts, of_scores, packed
from leaderboard.numbers.wide import wide
from leaderboard.protocols import protocol_of
from leaderboard.sections import Section


@dataclass(frozen=True)
class Shown:
    """The rows of one board with what is said of them.

    Args:
        taken: The records, of one protocol.
        parts: The rows by data set.
        columns: Every metric, in the order of the board.
    """

    taken: Intake
    parts: Sequence[Section]
    columns: Sequence[Column]

    @cached_property
    def protocol(self) -> int:
        """By which the records were measured; 0 where they do not say."""
        return max((number for record in self.taken.records if (number := protocol_of(record))), default=0)

    @cached_property
    def snapshot(self) -> str:
        """A hash of all records."""
        return snapshot(self.taken.rows)

    @cached_property
    def date(self) -> str:
        """When the newest record was made, in UTC; empty without records."""
        return max(map(created, self.taken.rows), default="")

    @cached_property
    def board(self) -> Sequence[TablePart]:
        """The wide table: a line a row."""
        return in_parts("board", wide(self.taken, self.columns))

    @cached_property
    def results(self) -> Sequence[TablePart]:
        """The long table: a line a figure."""
        return packed(
            "results",
            of_scores(score_lines((row.id, record) for row in self.taken.rows for record in row.records)),
        )
