"""CSV tables as text, with the line of every row, so that messages can name it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bench.data.decode import impostor
from bench.data.source import DataError


def read_table(path: Path, columns: Sequence[str], *, obtain: str = "") -> pd.DataFrame:
    """The table with every cell as text, blanks as "", indexed by line number (the header is line 1).

    Args:
        path: A .csv or .csv.gz file with a header.
        columns: Columns that must be there; others are kept too.
        obtain: Where to get the right file, for messages.

    Raises:
        DataError: If the file is not such a table, a column is missing or a row has too few or too many cells.
    """
    wrong = impostor(path)
    if wrong:
        raise DataError(f"{path}: expected a CSV table, found {wrong}. {obtain}".rstrip())
    try:
        table = pd.read_csv(path, dtype=str, na_values=[], keep_default_na=False, encoding="utf-8-sig", index_col=False)
    except (ValueError, OSError, EOFError, zlib.error, pd.errors.ParserError) as error:
        raise DataError(f"{path}: not a readable CSV table: {error}. {obtain}".rstrip()) from error
    table.columns = table.columns.str.strip()
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise DataError(
            f"{path}: expected the columns {', '.join(columns)}; {', '.join(missing)} not found among "
            f"{', '.join(table.columns)}. {obtain}".rstrip()
        )
    table.index = pd.RangeIndex(2, len(table) + 2, name="line")
    short = table.index[table.isna().any(axis=1)]
    if len(short):
        raise DataError(
            f"{path}: line {short[0]} has fewer cells than the header's {len(table.columns)} "
            f"({len(short)} such lines). Mend or remove the lines."
        )
    return table
