"""Tables as files: CSV that no spreadsheet runs, and parquet with its types, in parts below a megabyte."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Literal, get_args, get_type_hints

from leaderboard.numbers.escapes import Value, cell
from leaderboard.numbers.score_lines import ScoreLine

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
            that nobody takes a part for the whole.
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
    """The table as CSV, in files of at most so many bytes; a line that is longer is a part alone."""
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
    """The table as compressed CSV, in files of at most so many bytes before that, and after."""
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
    """Whether the package that writes parquet is installed."""
    return find_spec("pyarrow") is not None


def parquet_bytes(table: Table) -> bytes:
    """A parquet file, compressed; the same table gives the same bytes under one version of pyarrow."""
    import pyarrow  # only here: it is an extra, and takes half a second
    import pyarrow.parquet

    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    columns = list(zip(*table.lines, strict=True)) if table.lines else [()] * len(table.kinds)
    arrays = [pyarrow.array(column, types[kind]) for column, kind in zip(columns, table.kinds.values(), strict=True)]
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays, names=list(table.kinds)), stream, compression="zstd")
    return stream.getvalue()
