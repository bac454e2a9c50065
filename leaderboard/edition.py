"""The data that all pages of one build share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bench.results.records import Record
from leaderboard.board import Row
from leaderboard.comparison import Ranking, ranking
from leaderboard.decisions import snapshot
from leaderboard.entries import Column
from leaderboard.intake import Intake, protocol_of
from leaderboard.lines import Line, Section, lines, sections
from leaderboard.names import digest, slug, slugs
from leaderboard.panel import dumps
from leaderboard.row_schema import BoardRow, board_row
from leaderboard.tables import TablePart, in_parts, of_scores, packed, score_lines, wide


@dataclass(frozen=True)
class Edition:
    """One build of the board.

    Args:
        taken: What the results held.
        board: Its rows.
        parts: The rows by data set.
        columns: Every metric.
        ranking: Which rows paired tests tell apart.
        lines: A line a row.
    """

    taken: Intake
    board: Sequence[Row]
    parts: Sequence[Section]
    columns: Sequence[Column]
    ranking: Ranking
    lines: Sequence[Line]

    @classmethod
    def of(cls, taken: Intake) -> Edition:
        """The edition of what a results folder held."""
        board = taken.rows
        parts = sections(board)
        ranks = ranking(parts)
        return cls(taken, board, parts, taken.columns, ranks, lines(parts, taken.tier, ranks.ranks))

    @cached_property
    def methods(self) -> Mapping[str, str]:
        """A file stem a method."""
        return slugs(row.method for row in self.board)

    @cached_property
    def attacks(self) -> Mapping[tuple[str, str], tuple[str, tuple[tuple[Line, Record], ...]]]:
        """File stem and records with their rows, by attack kind and name."""
        found: dict[tuple[str, str], list[tuple[Line, Record]]] = {}
        for line in self.lines:
            for record in line.row.records:
                if record.attack is not None:
                    found.setdefault((record.kind, record.attack.name), []).append((line, record))
        stems = slugs("/".join(key) if sum(key[1] == other[1] for other in found) > 1 else key[1] for key in found)
        named = {key: stems.get(key[1]) or stems["/".join(key)] for key in found}
        return {key: (named[key], tuple(found[key])) for key in sorted(found)}

    @cached_property
    def ids(self) -> Mapping[str, str]:
        """Names of rows by their cells."""
        return {row.cell: row.id for row in self.board}

    @cached_property
    def pictured(self) -> Mapping[tuple[str, str, str], str]:
        """The file of every picture, by cell, record and name."""
        return {where: f"figures/{slug(where[2])}-{digest('/'.join(where))}.png" for where in self.taken.pictures}

    @cached_property
    def prints(self) -> Mapping[str, str]:
        """A hash of everything shown of a row, by the row's name."""
        return {line.id: _print(line) for line in self.lines}

    @cached_property
    def described(self) -> str:
        """A hash of what the records say of metrics."""
        told = [column.model_dump(mode="json") for column in self.columns]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    @cached_property
    def rows(self) -> tuple[BoardRow, ...]:
        """Its rows as data."""
        return tuple(board_row(row, self.taken) for row in self.board)

    @cached_property
    def protocol(self) -> int:
        """By which the records were measured; 0 where they do not say."""
        return max((number for record in self.taken.records if (number := protocol_of(record))), default=0)

    @cached_property
    def snapshot(self) -> str:
        """A hash of all records."""
        return snapshot(self.board)

    @cached_property
    def date(self) -> str:
        """When the newest record was made, in UTC; empty without records."""
        return max((row.created for row in self.board), default="")

    @cached_property
    def board_table(self) -> Sequence[TablePart]:
        """The wide table: a line a row."""
        return in_parts("board", wide(self.rows, self.columns))

    @cached_property
    def results_table(self) -> Sequence[TablePart]:
        """The long table: a line a figure."""
        return packed(
            "results",
            of_scores(score_lines((row.id, record) for row in self.board for record in row.records)),
        )

    @cached_property
    def shared(self) -> Mapping[str, object]:
        """The variables of every page's frame and tables."""
        return {
            "columns": self.columns,
            "named": {column.name: column for column in self.columns},
            "stems": self.methods,
            "attack_stems": {key: stem for key, (stem, _) in self.attacks.items()},
            "ids": self.ids,
            "dates": self.dates,
            "several": len(self.parts) > 1,
        }

    @cached_property
    def dates(self) -> tuple[str, str] | None:
        """The days of the oldest and the newest record; None without records."""
        created = [record.created[:10] for record in self.taken.records]
        return (min(created), max(created)) if created else None


def _print(line: Line) -> str:
    row = line.row
    records = [record.digest or record.model_dump_json() for record in row.records]
    told = [records, row.unrated, sorted(row.earlier), line.told, line.data, dict(line.ranks), line.tier,
            row.vouched, row.said, dumps(row.panel, row.membership)]  # fmt: skip
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
