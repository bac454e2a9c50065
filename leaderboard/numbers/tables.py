"""Tables as files: CSV that no spreadsheet runs, and parquet with its types."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.util import find_spec
from typing import get_args, get_type_hints

from leaderboard.numbers.escapes import Value, cell
from leaderboard.numbers.score_lines import ScoreLine

Kind = type[str] | type[int] | type[float]


@dataclass(frozen=True)
class Table:
    """Lines under named columns.

    Args:
        kinds: What each column holds, in order; any of its places may be empty.
        lines: Values by column; what is missing is empty.
    """

    kinds: Mapping[str, Kind]
    lines: Sequence[Mapping[str, Value]]


def of_scores(lines: Iterable[ScoreLine]) -> Table:
    """The long table."""
    hints = get_type_hints(ScoreLine)
    kinds = {
        field.name: next(
            kind for kind in (str, int, float) if kind in (hints[field.name], *get_args(hints[field.name]))
        )
        for field in fields(ScoreLine)
    }
    return Table(kinds, [asdict(line) for line in lines])


def csv_text(table: Table) -> str:
    """UTF-8, commas, a header; text that a spreadsheet would run as a formula gets an apostrophe before it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, table.kinds, lineterminator="\n")
    writer.writerow({name: cell(name) for name in table.kinds})
    for line in table.lines:
        writer.writerow({name: cell(value) for name, value in line.items()})
    return text.getvalue()


def can_write_parquet() -> bool:
    """Whether the package that writes parquet is installed."""
    return find_spec("pyarrow") is not None


def parquet_bytes(table: Table) -> bytes:
    """A parquet file, compressed; the same table gives the same bytes under one version of pyarrow."""
    import pyarrow  # only here: it is an extra, and takes half a second
    import pyarrow.parquet

    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    arrays = [
        pyarrow.array([line.get(name) for line in table.lines], types[kind]) for name, kind in table.kinds.items()
    ]
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(arrays, names=list(table.kinds)), stream, compression="zstd")
    return stream.getvalue()
