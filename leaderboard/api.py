"""The static API: an index, a file a row, and all records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Literal

from bench.results.record_parts import Part
from bench.results.records import json_schema
from leaderboard.edition import Edition
from leaderboard.entries import Column
from leaderboard.row_schema import BoardRow, RowHead
from leaderboard.tables import TablePart

INDEX = "api/index.json"
SCHEMAS = "api/schema/"


class TableFile(Part):
    """A file of a table, whole or a part of it.

    Args:
        file: Relative to the board.
        table: "board", with a line a row, or "results", with a line a figure.
        datasets: Whose rows it holds; a data set may go on in the next part.
        lines: How many, without the header.
    """

    file: str
    table: Literal["board", "results"]
    datasets: list[str]
    lines: int


class Index(Part):
    """All rows of a board, its columns, and its snapshot.

    Args:
        protocol: By which its records were measured; 0 where they do not say.
        snapshot: A hash of all its records.
        date: When the newest record was made.
        schemas: The JSON Schemas of rows, records and this file, relative to the board.
        tables: The CSV files in order, `results` compressed by gzip; a table in several has no file of its bare name.
            Beside each stands the same as parquet where that could be written.
    """

    schema_version: Literal[1] = 1
    protocol: int
    snapshot: str
    date: str
    schemas: dict[str, str]
    tables: list[TableFile]
    columns: list[Column]
    rows: list[RowHead]


def index(edition: Edition) -> str:
    """The text of the index."""
    content = Index(
        protocol=edition.protocol, snapshot=edition.snapshot, date=edition.date,
        schemas={name: f"{SCHEMAS}{name}.json" for name in schemas()}, columns=list(edition.columns),
        tables=[*_tables("board", edition.board_table), *_tables("results", edition.results_table)],
        rows=[RowHead.model_validate(row.model_dump(include=set(RowHead.model_fields))) for row in edition.rows],
    )  # fmt: skip
    return _dumps(content.model_dump(mode="json"))


def row_file(row: BoardRow) -> str:
    """The text of a row's file."""
    return _dumps(row.model_dump(mode="json"))


def schemas() -> dict[str, str]:
    """The JSON Schemas by the name of what they describe."""
    made = {"index": Index.model_json_schema(), "row": BoardRow.model_json_schema(), "record": dict(json_schema())}
    return {name: _dumps(schema) for name, schema in made.items()}


def _tables(name: Literal["board", "results"], parts: Sequence[TablePart]) -> Iterator[TableFile]:
    for part in parts:
        lines = len(part.table.lines)
        yield TableFile(file=part.name, table=name, datasets=part.values("dataset"), lines=lines)


def _dumps(content: object) -> str:
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"
