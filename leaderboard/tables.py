"""The board as CSV, parquet and LaTeX, by row and by figure."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from operator import attrgetter
from typing import Literal, get_args, get_type_hints

from bench.results.records import Record, ScoreRecord
from leaderboard.board import USEFUL, epsilon_text, machine
from leaderboard.entries import Column, interval, number, reason, said
from leaderboard.escapes import cell, tex
from leaderboard.intake import protocol_of
from leaderboard.row_schema import PERSON, PRIVACY, BoardRow, Figure, Value, file_columns, shown
from leaderboard.typesetting import MARKS, latex_frame

Kind = type[str] | type[int] | type[float]
Ending = Literal["csv", "csv.gz"]
FIGURE: Mapping[str, Kind] = {"": float, "low": float, "high": float, "by": str, "missing": str}
"""The columns of a metric in the wide table; the first has the metric's own name."""
MOST_BYTES = 950_000
"""Most bytes of a file."""
MOST_PACKED = 8_000_000
"""Most bytes compressed into one file, usually to less than a tenth."""


@dataclass(frozen=True)
class Table:
    """Lines under named, typed columns; a missing value is None."""

    kinds: Mapping[str, Kind]
    lines: Sequence[Sequence[Value]]


@dataclass(frozen=True)
class TablePart:
    """A table, or as much of it as one file holds.

    Args:
        stem: The file's name without its ending, with a number if the table has several parts.
        ending: "csv", or "csv.gz" if it is compressed.
        table: Its lines.
        content: The same as bytes: UTF-8, commas, a header; text that a spreadsheet would run as a formula begins with
            an apostrophe.
    """

    stem: str
    ending: Ending
    table: Table
    content: bytes

    @property
    def name(self) -> str:
        """The name of the CSV file."""
        return f"{self.stem}.{self.ending}"

    def values(self, column: str) -> list[str]:
        """The different texts in a column, in the order of the lines."""
        place = list(self.table.kinds).index(column)
        return list(dict.fromkeys(str(line[place]) for line in self.table.lines if line[place] is not None))


def in_parts(
    name: str, table: Table, *, compress: bool = False, most: int | None = None, most_bytes: int = MOST_BYTES
) -> list[TablePart]:
    """The table as CSV files of at most `most_bytes`, compressed or not."""
    head, *texts = _csv_lines(table)
    most = most or (MOST_PACKED if compress else most_bytes)

    def split(low: int, high: int) -> list[tuple[int, int, bytes]]:
        content = b"".join((head, *texts[low:high]))
        content = gzip.compress(content, 6, mtime=0) if compress else content  # the same bytes in every build
        if len(content) <= most_bytes or high - low < 2:
            return [(low, high, content)]
        middle = (low + high) // 2
        return [*split(low, middle), *split(middle, high)]

    starts, size = [0], len(head)
    for place, text in enumerate(texts):
        if size + len(text) > most and place > starts[-1]:
            starts.append(place)
            size = len(head)
        size += len(text)
    parts = [part for low, high in zip(starts, [*starts[1:], len(texts)], strict=True) for part in split(low, high)]
    stems = [name] if len(parts) == 1 else [f"{name}-{number}" for number in range(1, len(parts) + 1)]
    return [
        TablePart(stem, "csv.gz" if compress else "csv", Table(table.kinds, table.lines[low:high]), content)
        for stem, (low, high, content) in zip(stems, parts, strict=True)
    ]


def _csv_lines(table: Table) -> list[bytes]:
    texts: list[str] = []
    writer = csv.writer(_Appended(texts.append), lineterminator="\r\n")  # so that a text with either of them is quoted
    columns = zip(*([[*table.kinds], *table.lines]), strict=True)
    writer.writerows(zip(*map(_harmless, columns), strict=True))
    return [text.removesuffix("\r\n").encode() + b"\n" for text in texts]


@dataclass(frozen=True)
class _Appended:
    """A file that hands on each text as it is written."""

    write: Callable[[str], object]


def _harmless(column: Sequence[Value]) -> Sequence[Value]:
    """The column for a spreadsheet; most have few different values."""
    changed: dict[Value, Value] = {value: safe for value in set(column) if (safe := cell(value)) != value}
    return [changed.get(value, value) for value in column] if changed else column


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
    own = file_columns()
    kinds: dict[str, Kind] = dict(own)
    for column in columns:  # a metric may have the name of a column of the row itself
        name = f"{column.name} (metric)" if column.name in own else column.name
        kinds |= {f"{name}: {part}".removesuffix(": "): kind for part, kind in FIGURE.items()}
    lines = []
    for row in rows:
        line = row.values("files")
        for column in columns:
            figure = row.figures.get(column.name, Figure(status="not-run"))
            missing = figure.missing if figure.value is None else None
            line += [figure.value, figure.low, figure.high, figure.by or None, missing]
        lines.append(line)
    return Table(kinds, lines)


@dataclass(frozen=True, kw_only=True)
class ScoreLine:
    """One line of the long table: a figure or a reason.

    Args:
        row: The row's id on the board and in the static API.
        part: The part of the metric; empty for the whole.
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


SCORE = tuple(field.name for field in fields(ScoreLine) if field.name in ScoreRecord.model_fields)
figures = attrgetter(*SCORE)
RECORD = ("preset", "seed", "keys", "cell", "evaluator", "kind", "status", "phase", "device", "git", "created", "key")


def long(records: Iterable[tuple[str, Record]]) -> Table:
    """The long table of records, each with the id of its row."""
    hints = get_type_hints(ScoreLine)
    kinds = {
        field.name: next(
            kind for kind in (str, int, float) if kind in (hints[field.name], *get_args(hints[field.name]))
        )
        for field in fields(ScoreLine)
    }
    return Table(kinds, [line for row, record in records for line in _score_lines(row, record)])


def _score_lines(row: str, record: Record) -> Iterator[tuple[Value, ...]]:
    """The lines of a record, in the order of `ScoreLine`."""
    data, attack = record.dataset, record.attack
    common = ScoreLine(
        row=row,
        dataset=data.name if data else None,
        dataset_parameters=json.dumps(data.parameters, sort_keys=True) if data else None,
        fingerprint=data.fingerprint if data else None,
        public=data.public if data else None,
        public_fingerprint=data.public_fingerprint if data else None,
        method=record.method.name,
        method_parameters=json.dumps(record.method.parameters, sort_keys=True),
        attack=attack.name if attack else None,
        attack_parameters=json.dumps(attack.parameters, sort_keys=True) if attack else None,
        machine=machine(record) or None,
        protocol=protocol_of(record),
        **{name: getattr(record, name) for name in RECORD},
    )
    if record.status != "ok":
        yield tuple(vars(replace(common, reason=reason(record))).values())
    for metric, why in sorted(record.not_applicable.items()):
        yield tuple(vars(replace(common, metric=metric, status="not-applicable", reason=why)).values())
    line = dict(vars(common))  # of a record's many figures a copy each, as objects, took most of the time
    for metric, whole in sorted(record.scores.items()):
        line["metric"] = metric
        for line["part"], score in flat(whole):
            line.update(zip(SCORE, figures(score), strict=True))
            line["note"] = said(metric, score.note)
            yield tuple(line.values())


def flat(score: ScoreRecord, path: str = "") -> Iterator[tuple[str, ScoreRecord]]:
    """A score and its parts, each with its path ("Edema / test")."""
    yield path, score
    for name, part in score.parts.items():
        yield from flat(part, f"{path} / {name}" if path else name)


def latex_table(rows: Sequence[BoardRow], columns: Sequence[Column], caption: str) -> str:
    """A LaTeX table, 345 points wide: a column of text.

    Figures of attacks whose controls do not hold have a dagger, those that are not rated stand in brackets, and the
    reasons stand below. So do rows to which nothing applies.
    """
    columns = _main(rows, columns)
    fields = shown("paper")
    heads = [tex(one) for one in (*(f"{column.title} {column.arrow}".strip() for column in columns),
                                  *(mark.heading for _, mark in fields))]  # fmt: skip
    lines = list[str]()
    with_figures = [row for row in rows if any(figure.value is not None for figure in row.figures.values())]
    for row in with_figures:
        places = [_latex_figure(row.figures.get(column.name), column) for column in columns]
        values = [_latex_value(row, name) for name, _ in fields]
        lines.append(" & ".join([_breaking(row.written), *places, *values]) + r" \\")
    notes = dict.fromkeys(
        f"{row.written}: {text}" for row in with_figures for text in (row.unrated, row.caveat) if text
    )
    if any(_doubtful(row.figures.get(column.name)) for row in with_figures for column in columns):
        notes[f"† {MARKS['†']}"] = None
    if idle := [row.written for row in rows if row not in with_figures]:
        notes[f"Without a figure: {', '.join(idle)}"] = None
    return latex_frame(caption, r"p{.25\linewidth}", heads, lines, map(_breaking, notes))


def _main(rows: Sequence[BoardRow], columns: Sequence[Column]) -> list[Column]:
    """The board's main figures that any of these rows has."""
    having = {name for row in rows for name, figure in row.figures.items() if figure.value is not None}
    known = {column.name: column for column in columns if column.name in having}
    names = [name for name in (*USEFUL, *PRIVACY, *PERSON) if name in known]
    useful = [name for name in names if name in USEFUL][:1]
    return [known[name] for name in (*useful, *(name for name in names if name not in USEFUL))] or [*known.values()][:3]


def _breaking(text: str) -> str:
    """The text in braces, with line breaks after commas and before brackets.

    LaTeX would take a bracket or an asterisk without braces for an option of the row above.
    """
    return "{" + tex(text).replace(",", r",\allowbreak{}").replace("{[}", r"\allowbreak{}{[}") + "}"


def _latex_value(row: BoardRow, name: str) -> str:
    value = getattr(row, name)
    if not isinstance(value, float):
        return "none" if value in (None, "") else tex(str(value))
    unit = "" if row.per == "image" else f" {{\\scriptsize per {tex(row.per)}}}"
    return f"{tex(epsilon_text(value))}{unit if name == 'derived' else ''}"


def _doubtful(figure: Figure | None) -> bool:
    return figure is not None and figure.value is not None and figure.attacked and not figure.certified


def _latex_figure(figure: Figure | None, column: Column) -> str:
    if figure is None:
        return "{}"
    if figure.value is None:
        return f"{{\\scriptsize {tex(figure.words)}}}"
    text = tex(number(figure.value, column.digits)) + (r"$^\dagger$" if _doubtful(figure) else "")
    if figure.low is not None:
        ends = interval(figure.low, figure.high, column.digits).replace(" ", "")
        text += f" {{\\scriptsize ({tex(ends)})}}"
    return f"{{[}}{text}{{]}}" if figure.unrated else text
