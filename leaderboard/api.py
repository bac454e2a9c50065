"""The static API: one index, a file a row, and every record as it was written, replicates for paired tests included."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import JsonValue

from bench.results.record_parts import Part
from bench.results.records import ClaimRecord, json_schema
from leaderboard.board import Row
from leaderboard.decisions import created, marks
from leaderboard.edition import Shown
from leaderboard.entries import Column, Entry, EntryStatus
from leaderboard.intake import Intake
from leaderboard.names import slug
from leaderboard.panel import Word
from leaderboard.repeat import command
from leaderboard.standing import standing
from leaderboard.tables import TablePart

INDEX = "api/index.json"
SCHEMAS = "api/schema/"


class Figure(Part):
    """The weakest figure of a metric over the attacks that count, or why there is none.

    Args:
        by: The evaluator that gave it.
        certified: Whether the controls of the attack that gave it hold.
        unrated: Why it is not rated; empty where it is.
        reason: Why there is no figure.
    """

    status: EntryStatus
    value: float | None = None
    low: float | None = None
    high: float | None = None
    prediction_low: float | None = None
    prediction_high: float | None = None
    null: float | None = None
    null_low: float | None = None
    null_high: float | None = None
    p: float | None = None
    n: int | None = None
    by: str = ""
    certified: bool = True
    unrated: str = ""
    reason: str = ""


class RowHead(Part):
    """What the index says of a row.

    Args:
        id: Its name in every address.
        file: Of the row, relative to the board.
        method: As the command line takes it.
        tier: How far others than its author have checked it.
        said: What of it nobody but its author has looked into.
        created: When the last of its records was made, in UTC.
        verdict: What the attacks come to, in two words.
        sentence: The same in full, of attacks on pairs and on membership.
    """

    id: str
    file: str
    dataset: str
    method: str
    preset: str
    seed: int
    tier: str
    said: list[str]
    created: str
    verdict: Word
    sentence: str


class RowFile(RowHead):
    """A row whole.

    Args:
        caveat: What the method says goes with its figures.
        marks: What a reader should know beside them.
        unrated: Why its privacy figures are not rated; empty where they are.
        audit: What an audit has shown of the claim.
        device: The kind of device that it ran on: cpu or cuda.
        timed_on: The machine that throughput was measured on; empty where it was not.
        command: Repeats the row.
        figures: By metric, in the order of the board.
        records: The file of each record, relative to the board, by its name.
    """

    schema_version: Literal[1] = 1
    parameters: dict[str, JsonValue]
    keys: int
    caveat: str
    marks: list[str]
    unrated: str
    claim: ClaimRecord | None
    audit: str
    device: str
    timed_on: str = ""
    command: str
    figures: dict[str, Figure]
    records: dict[str, str]


class TableFile(Part):
    """A file of a table: all of it, or the part that is of these data sets.

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
    """All rows of a board, its columns, and the snapshot that it is.

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


def index(shown: Shown) -> str:
    """The text of the index."""
    content = Index(
        protocol=shown.protocol, snapshot=shown.snapshot, date=shown.date,
        schemas={name: f"{SCHEMAS}{name}.json" for name in schemas()}, columns=list(shown.columns),
        tables=[*_tables("board", shown.board), *_tables("results", shown.results)],
        rows=[_head(row, shown.taken) for row in shown.taken.rows],
    )  # fmt: skip
    return _dumps(content.model_dump(mode="json"))


def row_file(row: Row, taken: Intake) -> str:
    """The text of a row's file."""
    content = RowFile(
        **_head(row, taken).model_dump(), parameters=dict(row.parameters), keys=row.keys, caveat=row.caveat,
        marks=marks(row),
        unrated=row.unrated, claim=row.claim,
        audit=row.audited.sentence if row.audited else "", device=row.device, timed_on=row.timed_on,
        command=command(row),
        figures={name: _figure(entry) for name, entry in row.entries.items() if entry.status != "not-run"},
        records={record.evaluator: record_address(row, record.evaluator) for record in row.records},
    )  # fmt: skip
    return _dumps(content.model_dump(mode="json"))


def schemas() -> dict[str, str]:
    """The JSON Schemas by the name of what they describe."""
    made = {"index": Index.model_json_schema(), "row": RowFile.model_json_schema(), "record": dict(json_schema())}
    return {name: _dumps(schema) for name, schema in made.items()}


def row_address(row: Row) -> str:
    """Where a row's file stands, relative to the board."""
    return f"api/rows/{row.id}.json"


def record_address(row: Row, evaluator: str) -> str:
    """Where a record stands, relative to the board: byte for byte as it was written."""
    return f"api/records/{row.id}/{slug(evaluator)}.json"


def _head(row: Row, taken: Intake) -> RowHead:
    found = standing(row)
    return RowHead(
        id=row.id, file=row_address(row), dataset=row.dataset, method=row.label, preset=row.preset, seed=row.seed,
        tier=taken.tier(row).word, said=list(row.said), created=created(row), verdict=found.word,
        sentence=found.sentence,
    )  # fmt: skip


def _tables(name: Literal["board", "results"], parts: Sequence[TablePart]) -> Iterator[TableFile]:
    for part in parts:
        lines = len(part.table.lines)
        yield TableFile(file=part.name, table=name, datasets=part.values("dataset"), lines=lines)


def _figure(entry: Entry) -> Figure:
    score = entry.score
    if score is None:
        return Figure(status=entry.status, reason=entry.reason)
    return Figure(
        status=entry.status, value=score.value, low=score.low, high=score.high, prediction_low=score.prediction_low,
        prediction_high=score.prediction_high, null=score.null, null_low=score.null_low, null_high=score.null_high,
        p=score.p, n=score.n, by=entry.by, certified=entry.certified, unrated=entry.unrated,
    )  # fmt: skip


def _dumps(content: object) -> str:
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"
