"""CSV tables and text lists, with line numbers for messages."""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import nan
from pathlib import Path

import pandas as pd

from bench.contract.source import DataError
from bench.data.declared_size import open_gzip
from bench.data.subjects import spelling
from bench.disk.file_kind import impostor
from bench.validation import nearest

MARKS = {
    "1.0": 1.0, "1,0": 1.0, "1": 1.0, "0.0": 0.0, "0,0": 0.0, "0": 0.0, "-1.0": nan, "-1,0": nan, "-1": nan, "": nan,
}  # fmt: skip
VIEWS: Mapping[str, tuple[str, ...]] = {"frontal": ("AP", "PA"), "AP": ("AP",), "PA": ("PA",)}
"""The frontal views by the word that chooses them."""
_SEPARATORS = ",;\t|"
_STATED = re.compile(r'"?sep=([^\r\n"])"?\s*')  # a spreadsheet's first line
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def read_marks(path: Path, cells: pd.Series[str]) -> pd.Series[float]:
    """Labels of one column; DataError for cells that are no mark."""
    odd = cells.index[~cells.isin(list(MARKS))]
    if len(odd):
        raise DataError(
            f"{path.name}: line {odd[0]}, column {cells.name}: expected 1.0, 0.0, -1.0 or blank, found something else "
            f"({len(odd)} such cells). Correct the table or download it again"
        )
    return cells.map(MARKS).astype(float)


def tasks_of(text: str, noun: str = "findings") -> tuple[str, ...]:
    """Split a text into column names.

    >>> tasks_of("Edema+Pleural Effusion")
    ('Edema', 'Pleural Effusion')

    Raises:
        ValueError: It names none, or one twice; the message calls them by `noun`.
    """
    tasks = tuple(text.split("+"))
    if not text or len(set(tasks)) != len(tasks):
        raise ValueError(f"tasks must be different {noun} joined by '+', got {text!r}")
    return tasks


def read_list(path: Path, obtain: str) -> list[str]:
    """The non-blank lines of a text file; DataError without the file."""
    if not path.exists():
        raise DataError(f"expected {path}, found none. {obtain}")
    wrong = impostor(path)
    if wrong:
        raise DataError(f"{path}: expected a list, found {wrong}. {obtain}")
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected a list, found bytes that are not text ({error}). {obtain}") from error


def read_table(
    path: Path, columns: Sequence[str], *, optional: Sequence[str] = (), rest: bool = False, obtain: str = ""
) -> pd.DataFrame:
    """Read a CSV table as text; the index is the line number.

    Blank cells are "". `optional` columns may be there; `rest` keeps the others too. The text is UTF-8, or UTF-16 with
    a mark; cells are separated as the first line says (`sep=;`), or by what gives the header's columns: comma,
    semicolon, tab or bar. Raises DataError for missing or misspelt columns, rows of another length, and control
    characters.
    """
    try:
        if wrong := impostor(path):
            raise DataError(f"{path}: expected a CSV table, found {wrong}. {obtain}".rstrip())
        header, lines, cells = _read(path, (*columns, *optional), rest=rest, obtain=obtain)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not a readable CSV table: it is neither UTF-8 nor UTF-16 with a mark. If it comes from a "
            f"spreadsheet, save it as 'CSV UTF-8'. {obtain}".rstrip()
        ) from error
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise DataError(f"{path}: not a readable CSV table: {error}. {obtain}".rstrip()) from error
    _check_header(path, header, (*columns, *optional), obtain)
    missing = [column for column in columns if column not in header]
    again = sorted({column for column in header if column and header.count(column) > 1})
    if missing:
        near = dict.fromkeys(filter(None, (nearest(name, header).strip() for name in missing)))
        hint = f" ({' '.join(near)} Rename it)" if near else ""
        wrong = f"{', '.join(missing)} not found among {', '.join(header)}{hint}"
    elif again:
        wrong = f"{', '.join(again)} found more than once: keep one of each"
    else:
        wrong = ""
    if wrong:
        raise DataError(
            f"{path}: expected the columns {', '.join(columns)}, each column once; {wrong}. {obtain}".rstrip()
        )
    return pd.DataFrame(cells, index=pd.Index(lines, name="line", dtype="int64"), dtype=str)


def refuse(wrong: pd.Series[bool], table: Path | str, fault: str, remedy: str = "") -> None:
    """Raise DataError if lines are wrong, with the first and their number."""
    lines = wrong.index[wrong]
    if len(lines):
        raise DataError(f"{table}: line {lines[0]}: {fault} ({len(lines)} such lines). {remedy}".rstrip())


def _read(
    path: Path, columns: Sequence[str], *, rest: bool, obtain: str
) -> tuple[list[str], list[int], dict[str, list[str]]]:
    """Header, line numbers of rows, and the chosen columns, without blank lines."""
    with (
        io.TextIOWrapper(open_gzip(path), encoding="utf-8-sig", newline="")
        if path.suffix == ".gz"
        else path.open(encoding=_encoding(path), newline="")
    ) as file:
        lines_read = _printable(path, file, obtain)
        first = next(lines_read, "")
        stated = _STATED.fullmatch(first)
        first = first if stated is None else next(lines_read, "")
        separator = _separator(first, columns) if stated is None else stated[1]
        rows = csv.reader(chain([first], lines_read), strict=True, delimiter=separator)
        header = [name.strip() for name in next(rows, [])]
        chosen = [number for number, name in enumerate(header) if rest or name in columns]
        lines: list[int] = []
        cells: list[list[str]] = [[] for _ in chosen]
        for row in rows:
            if not any(map(str.strip, row)):
                continue
            line = rows.line_num + (stated is not None)
            if len(row) != len(header):
                raise DataError(
                    f"{path}: line {line} has {len(row)} cells, expected {len(header)} as in the header. Correct or "
                    f"remove the line."
                )
            lines.append(line)
            for column, number in zip(cells, chosen, strict=True):
                column.append(row[number])
    told = [
        (number, column) for column, number in zip(cells, chosen, strict=True)
        if header[number] or any(map(str.strip, column))  # spreadsheets write columns of nothing
    ]  # fmt: skip
    nameless = [str(number + 1) for number, _ in told if not header[number]]
    if len(nameless) > 1:
        raise DataError(f"{path}: columns {', '.join(nameless)} have no name. Name them or remove them")
    return header, lines, {header[number]: column for number, column in told}


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in _UTF16 else "utf-8-sig"


def _separator(header: str, columns: Sequence[str]) -> str:
    """The separator that gives most columns; then most cells.

    >>> _separator("path;age, years;class", ("path", "class"))
    ';'
    """

    def found(separator: str) -> tuple[int, int]:
        names = [name.strip() for name in next(csv.reader([header], delimiter=separator), [])]
        return len({*names} & {*columns}), len(names)

    return max(_SEPARATORS, key=found)


def _printable(path: Path, lines: Iterable[str], obtain: str) -> Iterator[str]:
    """The lines; DataError for a control character."""
    for number, line in enumerate(lines, start=1):
        if odd := _CONTROL.search(line):
            raise DataError(
                f"{path}: line {number} holds the control character {odd[0]!r}. Correct it. {obtain}".rstrip()
            )
        yield line


def _check_header(path: Path, header: Sequence[str], expected: Sequence[str], obtain: str) -> None:
    """Raise DataError if only spelling separates a column from an expected one."""
    meant = {spelling(column): column for column in expected}
    for name in header:
        column = meant.get(spelling(name), name)
        if column != name:
            raise DataError(f"{path}: expected the column {column}, found {name!r}: rename it. {obtain}".rstrip())
