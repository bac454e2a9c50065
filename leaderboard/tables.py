"""The board as CSV and parquet: a wide and a long table."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Literal, get_args, get_type_hints

from bench.results.records import Record, ScoreRecord
from leaderboard.board import machine
from leaderboard.entries import Column, reason
from leaderboard.escapes import Value, cell
from leaderboard.intake import protocol_of
from leaderboard.row_schema import COLUMNS, FIGURE, BoardRow, Figure

Kind = type[str] | type[int] | type[float]
MOST_BYTES = 950_000
"""Of a file: below what a page, a mail or a spreadsheet on a phone bears."""
MOST_PACKED = 8_000_000
"""Of what is compressed into one file, to a tenth or less as a rule: a table with a line a figure repeats itself."""


@dataclass(frozen=True)
class Table:
    """Lines under named columns.

    Args:
        kinds: What each column holds, in order; any of its places may be empty.
        lines: Values in the order of the columns; what is missing is None.
    """

    kinds: Mapping[str, Kind]
    lines: Sequence[Sequence[Value]]


@dataclass(frozen=True)
class TablePart:
    """A table, or so much of it as one file holds.

    Args:
        stem: The file's name without its ending: the table's own where one file holds all of it, else with a number, so
            that a part is not taken for the whole.
        ending: "csv", or "csv.gz" where it is compressed.
        table: Its lines.
        content: The same as bytes: UTF-8, commas, a header; text that a spreadsheet would run as a formula gets an
            apostrophe before it.
    """

    stem: str
    ending: Literal["csv", "csv.gz"]
    table: Table
    content: bytes

    @property
    def name(self) -> str:
        """Of the CSV file."""
        return f"{self.stem}.{self.ending}"

    def values(self, column: str) -> list[str]:
        """The different texts in a column, in the order of the lines."""
        place = list(self.table.kinds).index(column)
        return list(dict.fromkeys(str(line[place]) for line in self.table.lines if line[place] is not None))


def of_scores(lines: Iterable[ScoreLine]) -> Table:
    """The long table."""
    hints = get_type_hints(ScoreLine)
    kinds = {
        field.name: next(
            kind for kind in (str, int, float) if kind in (hints[field.name], *get_args(hints[field.name]))
        )
        for field in fields(ScoreLine)
    }
    return Table(kinds, [tuple(vars(line).values()) for line in lines])


def in_parts(name: str, table: Table, most: int = MOST_BYTES) -> list[TablePart]:
    """The table as CSV in files of at most `most` bytes."""
    head, *texts = _csv_lines(table)
    return _named(
        name,
        "csv",
        table,
        [
            (low, high, b"".join((head, *texts[low:high])))
            for low, high in _cuts([len(text) for text in texts], most - len(head))
        ],
    )


def packed(name: str, table: Table, most: int = MOST_PACKED, most_bytes: int = MOST_BYTES) -> list[TablePart]:
    """The table as compressed CSV in files of bounded size."""
    head, *texts = _csv_lines(table)

    def compressed(low: int, high: int) -> list[tuple[int, int, bytes]]:
        content = gzip.compress(b"".join((head, *texts[low:high])), 6, mtime=0)  # the same bytes in every build
        if len(content) <= most_bytes or high - low < 2:
            return [(low, high, content)]
        middle = (low + high) // 2
        return [*compressed(low, middle), *compressed(middle, high)]

    cuts = _cuts([len(text) for text in texts], most)
    return _named(name, "csv.gz", table, [part for low, high in cuts for part in compressed(low, high)])


def _cuts(sizes: Sequence[int], most: int) -> list[tuple[int, int]]:
    """From which to which line each part goes."""
    starts, held = [0], 0
    for place, size in enumerate(sizes):
        if held + size > most and place > starts[-1]:
            starts.append(place)
            held = 0
        held += size
    return list(zip(starts, [*starts[1:], len(sizes)], strict=True))


def _named(
    name: str, ending: Literal["csv", "csv.gz"], table: Table, parts: Sequence[tuple[int, int, bytes]]
) -> list[TablePart]:  # fmt: skip
    stems = [name] if len(parts) == 1 else [f"{name}-{number}" for number in range(1, len(parts) + 1)]
    return [
        TablePart(stem, ending, Table(table.kinds, table.lines[low:high]), content)
        for stem, (low, high, content) in zip(stems, parts, strict=True)
    ]


def _csv_lines(table: Table) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")  # text with either of them stands in quotes then
    harmless: dict[Value, Value] = {}  # most places hold what many others hold
    writer.writerow([cell(name) for name in table.kinds])
    yield _ended(text.getvalue())
    for line in table.lines:
        text.seek(0)
        text.truncate()
        places = []
        for value in line:
            if isinstance(value, str):
                if value not in harmless:
                    harmless[value] = cell(value)
                places.append(harmless[value])
            else:
                places.append(value)
        writer.writerow(places)
        yield _ended(text.getvalue())


def _ended(line: str) -> bytes:
    return line.removesuffix("\r\n").encode() + b"\n"


def can_write_parquet() -> bool:
    """True if pyarrow, which writes parquet, is installed."""
    return find_spec("pyarrow") is not None


def parquet_bytes(table: Table) -> bytes:
    """A compressed parquet file; deterministic under one version of pyarrow."""
    import pyarrow  # only here: it is an extra, and takes half a second
    import pyarrow.parquet

    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    columns = list(zip(*table.lines, strict=True)) if table.lines else [()] * len(table.kinds)
    arrays = [pyarrow.array(column, types[kind]) for column, kind in zip(columns, table.kinds.values(), strict=True)]
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays, names=list(table.kinds)), stream, compression="zstd")
    return stream.getvalue()


def wide(rows: Sequence[BoardRow], columns: Sequence[Column]) -> Table:
    """The wide table: one line a row, five columns a metric."""
    kinds: dict[str, Kind] = dict(COLUMNS)
    for column in columns:  # a metric that is called like a column of the row itself is told from it
        name = f"{column.name} (metric)" if column.name in COLUMNS else column.name
        kinds |= {f"{name}: {part}".removesuffix(": "): kind for part, kind in FIGURE.items()}
    lines = []
    for row in rows:
        line: list[Value] = list(row.table.values())
        for column in columns:
            figure = row.figures.get(column.name, Figure(status="not-run"))
            missing = figure.missing if figure.value is None else None
            line += [figure.value, figure.low, figure.high, figure.by or None, missing]
        lines.append(line)
    return Table(kinds, lines)


@dataclass(frozen=True, kw_only=True)
class ScoreLine:
    """One line of the long table: a figure, or a gap.

    Args:
        row: The row of the board: its address, and its name in the static API.
        part: Of the metric; empty for the whole.
        reason: Why there is no figure.
        device: The kind of device that it ran on: cpu or cuda.
        machine: The processor or accelerator.
    """

    row: str
    dataset: str | None
    dataset_parameters: str | None
    fingerprint: str | None
    public: str | None
    public_fingerprint: str | None
    method: str
    method_parameters: str
    preset: str
    seed: int
    keys: int
    cell: str
    evaluator: str
    kind: str
    attack: str | None
    attack_parameters: str | None
    status: str
    phase: str | None
    reason: str | None = None
    metric: str | None = None
    part: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    prediction_low: float | None = None
    prediction_high: float | None = None
    n: int | None = None
    null: float | None = None
    null_low: float | None = None
    null_high: float | None = None
    p: float | None = None
    better: str | None = None
    unit: str | None = None
    note: str | None = None
    device: str
    machine: str | None
    protocol: int | None
    git: str | None
    created: str
    key: str


def score_lines(records: Iterable[tuple[str, Record]]) -> Iterator[ScoreLine]:
    """One line a figure; gaps have a line with status and reason.

    Args:
        records: Each with the name of its row.
    """
    for row, record in records:
        common = _common(row, record)
        if record.status != "ok":
            yield replace(common, reason=reason(record))
        for metric, why in sorted(record.not_applicable.items()):
            yield replace(common, metric=metric, status="not-applicable", reason=why)
        for metric, whole in sorted(record.scores.items()):
            for part, score in flat(whole):
                yield replace(
                    common, metric=metric, part=part, value=score.value, low=score.low, high=score.high,
                    prediction_low=score.prediction_low, prediction_high=score.prediction_high, n=score.n,
                    null=score.null, null_low=score.null_low, null_high=score.null_high, p=score.p,
                    better=score.better, unit=score.unit, note=score.note,
                )  # fmt: skip


def flat(score: ScoreRecord, path: str = "") -> Iterator[tuple[str, ScoreRecord]]:
    """A score and its parts, each with its path ("Edema / test")."""
    yield path, score
    for name, part in score.parts.items():
        yield from flat(part, f"{path} / {name}" if path else name)


def _common(row: str, record: Record) -> ScoreLine:
    data, attack = record.dataset, record.attack
    return ScoreLine(
        row=row,
        dataset=data.name if data else None,
        dataset_parameters=json.dumps(data.parameters, sort_keys=True) if data else None,
        fingerprint=data.fingerprint if data else None,
        public=data.public if data else None,
        public_fingerprint=data.public_fingerprint if data else None,
        method=record.method.name,
        method_parameters=json.dumps(record.method.parameters, sort_keys=True),
        preset=record.preset,
        seed=record.seed,
        keys=record.keys,
        cell=record.cell,
        evaluator=record.evaluator,
        kind=record.kind,
        attack=attack.name if attack else None,
        attack_parameters=json.dumps(attack.parameters, sort_keys=True) if attack else None,
        status=record.status,
        phase=record.phase,
        device=record.device,
        machine=machine(record) or None,
        protocol=protocol_of(record),
        git=record.git,
        created=record.created,
        key=record.key,
    )
