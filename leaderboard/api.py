"""The static API: index, rows, records, and decisions on them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pydantic import JsonValue

from bench.results import signed_json
from bench.results.record_parts import Part
from bench.results.records import json_schema
from leaderboard.edition import Edition, snapshot
from leaderboard.entries import Column
from leaderboard.escapes import page
from leaderboard.intake import Intake, address
from leaderboard.row_schema import BoardRow, FieldData, RowName, field_data, head
from leaderboard.tables import TablePart

INDEX = "api/index.json"
SCHEMAS = "api/schema/"
MANIFEST = "board-manifest.json"
Decision = Literal["shown", "unrated", "superseded", "refused"]


class TableFile(Part):
    """A file of a table, whole or a part of it.

    Args:
        file: Relative to the board.
        table: "board", with a line a row, or "results", with a line a figure.
        datasets: The data sets of its rows; a data set may continue in the next part.
        lines: How many, without the header.
    """

    file: str
    table: Literal["board", "results"]
    datasets: list[str]
    lines: int


class Index(Part):
    """All rows of a board, their fields and metrics, and its snapshot.

    Args:
        protocol: Of its records; 0 if they name none.
        snapshot: A hash of all its records.
        date: When the newest record was made.
        schemas: The JSON Schemas of rows, records and this file, relative to the board.
        tables: The CSV files in order, `results` compressed by gzip; a table in several parts has no file of its bare
            name. Beside each is the same as parquet if that could be written.
        fields: How a row's fields are shown.
        columns: The metrics in order.
        rows: Without the fields that have a default, and without figures.
    """

    schema_version: Literal[3] = 3
    protocol: int
    snapshot: str
    date: str
    schemas: dict[str, str]
    tables: list[TableFile]
    fields: list[FieldData]
    columns: list[Column]
    rows: list[BoardRow]


class RowDecision(RowName):
    """A row, and why it stands in its place.

    Args:
        board: The address of its board, below the site.
        reason: Of a decision other than "shown".
        marks: Notes beside its figures: records of earlier code, of several versions.
        records: How many there are.
        digest: A hash over their digests.
        submissions: How many bundles with it, of any seed, were handed in; 0 for the board's own rows.
        checks: What verifiers and the board say of it.
    """

    board: str
    protocol: int
    decision: Decision
    reason: str
    marks: list[str]
    records: int
    digest: str
    submissions: int
    checks: list[str]


class FileDecision(Part):
    """A file, or all files of a cell, that no board shows."""

    name: str
    decision: Decision
    reason: str


class BoardManifest(Part):
    """Every row of every board, and the files left out.

    Args:
        protocol: Of the board at the root of the site.
        snapshot: A hash of all rows: two sites with the same one show the same records.
        date: When the newest record was made.
    """

    schema_version: Literal[1] = 1
    protocol: int
    snapshot: str
    date: str
    rows: list[RowDecision]
    left_out: list[FileDecision]


def index(edition: Edition) -> str:
    """The text of the index."""
    content = Index(
        protocol=edition.protocol, snapshot=edition.snapshot, date=edition.date,
        schemas={name: f"{SCHEMAS}{name}.json" for name in schemas()}, columns=list(edition.columns),
        tables=[*_tables("board", edition.board_table), *_tables("results", edition.results_table)],
        fields=field_data(), rows=[],
    ).model_dump(mode="json")  # fmt: skip
    return _dumps(content | {"rows": [head_data(row, figures=False) for row in edition.rows]})


def head_data(row: BoardRow, *, figures: bool) -> dict[str, JsonValue]:
    """A row as the index and the scripts have it."""
    content: dict[str, JsonValue] = head(row, figures=figures).model_dump(mode="json", exclude_defaults=True)
    return content


def row_file(row: BoardRow) -> str:
    """The text of a row's file."""
    return _dumps(row.model_dump(mode="json"))


def schemas() -> dict[str, str]:
    """The JSON Schemas by the name of the files that they describe."""
    known = {"index": Index.model_json_schema(), "row": BoardRow.model_json_schema(), "record": dict(json_schema())}
    return {name: _dumps(schema) for name, schema in known.items()}


def script(call: str, *values: JsonValue) -> str:
    """A script, in ASCII, that calls a function with values."""
    texts = (json.dumps(_harmless(value), sort_keys=True, separators=(",", ":"), allow_nan=False) for value in values)
    return f"{call}({', '.join(texts)});\n".replace("<", "\\u003c")


def _harmless(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {page(name): _harmless(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_harmless(each) for each in value]
    return page(value) if isinstance(value, str) else value


def manifest(editions: Mapping[int, Edition], taken: Intake) -> str:
    """Decisions on rows, newest board first, and on refused files."""
    newest = max(editions, default=0)
    left_out = [
        FileDecision(
            name=refusal.name, decision="superseded" if refusal.why == "superseded" else "refused",
            reason=f"{refusal.why}: {refusal.reason}",
        )
        for refusal in taken.refused
    ]  # fmt: skip
    content = BoardManifest(
        protocol=newest, snapshot=snapshot(row for edition in editions.values() for row in edition.board),
        date=max((edition.date for edition in editions.values()), default=""),
        rows=[_decide(row, number, newest, edition) for number, edition in editions.items() for row in edition.rows],
        left_out=left_out,
    )  # fmt: skip
    return signed_json.written(signed_json.attest(content.model_dump(mode="json"), MANIFEST)).decode()


def _decide(row: BoardRow, protocol: int, newest: int, edition: Edition) -> RowDecision:
    decision: Decision = "shown"
    reason = ""
    if protocol != newest:
        decision, reason = "superseded", f"measured by protocol {protocol}; protocol {newest} counts now"
    elif row.unrated:
        decision, reason = "unrated", row.unrated
    return RowDecision(
        **{name: getattr(row, name) for name in RowName.model_fields},
        board="" if protocol == newest else address(protocol), protocol=protocol, decision=decision, reason=reason,
        marks=row.marks, records=len(row.records), digest=snapshot([edition.row_of(row)]),
        submissions=row.submissions, checks=row.checks,
    )  # fmt: skip


def _tables(name: Literal["board", "results"], parts: Sequence[TablePart]) -> Iterator[TableFile]:
    for part in parts:
        lines = len(part.table.lines)
        yield TableFile(file=part.name, table=name, datasets=part.values("dataset"), lines=lines)


def _dumps(content: object) -> str:
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"
