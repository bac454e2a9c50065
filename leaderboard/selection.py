"""Which columns a table of all figures has, and on which side of formal claims they stand."""

from __future__ import annotations

from collections.abc import Sequence

from bench.contract.metric import GROUPS
from leaderboard.board import Row
from leaderboard.columns import Column

MAIN = frozenset({"utility-auc", "guesswork", "reid-auc", "top-1"})  # shown even where no row has a figure
FORMAL = "Formal privacy"  # the group in which claims stand beside what was shown of them
SILENT = frozenset({"not-run", "not-applicable"})  # the reasons stand below the table


def used(shown: Sequence[Column], some: Sequence[Row]) -> list[Column]:
    """The columns for a table: the main ones always, others where any row has a figure, or should have one."""
    return [c for c in shown if c.name in MAIN or any(row.entries[c.name].status not in SILENT for row in some)]


def apart(shown: Sequence[Column]) -> tuple[list[Column], list[Column], list[Column]]:
    """The columns before formal claims, beside them, and after them."""
    before = GROUPS[: GROUPS.index(FORMAL)]
    beside = [column for column in shown if column.group == FORMAL]
    left = [column for column in shown if column.group in before]
    return left, beside, [column for column in shown if column.group not in (*before, FORMAL)]
