"""Tables of a folder of released rows: labels, and checked lines.

Errors name lines and counts, neither cells nor the place of a table (`bench.data.release_folder`).
"""

from __future__ import annotations

__figures__ = False

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from bench.contract.recorded import LINKS
from bench.contract.source import DataError
from bench.data.csv_tables import read_table
from bench.data.recorded_rows import ABOUT, LAYOUT, TENSORS, Rows, read_released
from bench.data.sets.folder import findings_of, one_hot
from bench.data.subjects import spelling

LABELS, MEMBERS = "labels.csv", "members.csv"
_SHOWN = 20


def own_labels(rows: Rows, told: Mapping[str, Any], findings: Sequence[str], table: Path | None) -> np.ndarray | None:
    """Labels (m, k) of released rows in the data set's findings."""
    if table is not None and table.is_file():
        return _listed_labels(rows, findings, table)
    if told.get("labels") == "folders":
        if rows.shape is not None or not all("/" in name for name in rows.names):
            raise DataError(f'imported: "labels": "folders" in {ABOUT} needs images in a sub-folder a class')
        marks = pd.DataFrame({"class": [name.partition("/")[0] for name in rows.names]})
        return _coded(one_hot(marks)[0], findings, ABOUT, classes=True)
    if not (rows.place / TENSORS).is_file():
        return None
    found = read_released(rows.place / TENSORS).get("labels")
    if found is None:
        return None
    names = told.get("findings")
    if not isinstance(names, list) or found.ndim != 2 or found.shape != (rows.count, len(names)):
        raise DataError(
            f"imported: labels in {TENSORS} have shape {tuple(found.shape)}: expected {rows.count} rows, and as many "
            f"columns as findings that {ABOUT} names"
        )
    if bad := int(((found < 0) | (found > 1)).any(dim=1).sum()):
        raise DataError(f"imported: labels in {TENSORS} must be 0 to 1, or NaN if unknown: {bad} rows have others")
    return _coded(pd.DataFrame(found.to(torch.float32).numpy(), columns=[str(name) for name in names]), findings, ABOUT)


def _listed_labels(rows: Rows, findings: Sequence[str], table: Path) -> np.ndarray | None:
    """Labels of a table; None if it names rows alone."""
    cells = lines_of(table, (), ("released", "path", "class"), rest=True)
    names = [column for column in ("released", "path") if column in cells.columns]
    if len(names) != 1:
        raise DataError(f"{called(table)}: expected the column released, and class or one column a finding. {LAYOUT}")
    released = released_rows(table, cells[names[0]], rows)
    refuse(table, cells.index[pd.Series(released).duplicated().to_numpy()], "the released row is listed a second time")
    columns = [column for column in cells.columns if column != names[0]]
    if not columns:
        return None
    if "class" in columns:
        marks, bad = one_hot(cells)
    else:
        meant = {spelling(name) for name in findings}
        marks, bad = findings_of(cells, [column for column in columns if spelling(column) in meant])
    if bad:
        lines = "".join(f"\n  line {line}: {why}" for line, why in sorted(bad)[:_SHOWN])
        raise DataError(f"{called(table)}: {len(bad)} bad labels:{lines}")
    found = np.full((rows.count, len(findings)), np.nan, dtype=np.float32)
    found[released] = _coded(marks, findings, called(table), classes="class" in columns)
    return found


def _coded(marks: pd.DataFrame, findings: Sequence[str], where: str, *, classes: bool = False) -> np.ndarray:
    """Released labels in the data set's columns; NaN for absent ones.

    Every one of `classes` must be a finding.
    """
    own = {spelling(str(column)): column for column in marks.columns}
    if len(own) < len(marks.columns):
        raise DataError(f"imported: labels in {where} name a finding twice: keep one of each")
    there = [name for name in findings if spelling(name) in own]
    if not there or (classes and len(there) < len(own)):
        raise DataError(
            f"imported: labels in {where} are of another coding: expected {', '.join(findings)}, got "
            f"{', '.join(map(str, marks.columns)) or 'no column'}"
        )
    found = np.full((len(marks), len(findings)), np.nan, dtype=np.float32)
    for place, name in enumerate(findings):
        if spelling(name) in own:
            found[:, place] = marks[own[spelling(name)]].to_numpy(dtype=np.float32)
    return found


def released_rows(table: Path, cells: pd.Series[str], rows: Rows) -> np.ndarray:
    """The released row of each line."""
    if rows.shape is not None:
        return numbers(table, cells, rows.count, "released rows")
    places = {spelling(name): row for row, name in enumerate(rows.names)}
    found = np.array([places.get(spelling(cell), -1) for cell in cells], dtype=np.int64)
    refuse(table, cells.index[found < 0], f"released is none of the {rows.count} images of the folder")
    return found


def numbers(table: Path, cells: pd.Series[str], count: int, what: str) -> np.ndarray:
    """Whole numbers below `count` in a column; DataError for others."""
    plain = cells.str.strip()
    whole = plain.str.fullmatch(r"[0-9]{1,12}")
    refuse(table, cells.index[~whole], f"expected a number of {what}, from 0")
    found = plain.astype(np.int64).to_numpy()
    refuse(table, cells.index[found >= count], f"there are {count} {what}, numbered from 0, and this is beyond them")
    return found


def called(table: Path) -> str:
    """The layout's name of a table.

    Links may lie in a file of the owner's own, and its name is hers.
    """
    return table.name if table.name in (LABELS, MEMBERS) else LINKS


def refuse(table: Path, lines: pd.Index[Any], fault: str) -> None:
    """Raise DataError for lines, if there are any."""
    if len(lines):
        raise DataError(f"{called(table)}: line {lines[0]}: {fault} ({len(lines)} such lines). {LAYOUT}")


def lines_of(path: Path, columns: Sequence[str], optional: Sequence[str], *, rest: bool = False) -> pd.DataFrame:
    """As `cells_of`, of a table that has a line at least."""
    cells = cells_of(path, columns, optional, rest=rest)
    if not len(cells):
        raise DataError(f"{called(path)}: expected a line a row, found none. {LAYOUT}")
    return cells


def cells_of(path: Path, columns: Sequence[str], optional: Sequence[str], *, rest: bool) -> pd.DataFrame:
    """A table, with errors that name it without its place."""
    try:
        return read_table(path, columns, optional=optional, rest=rest, obtain=LAYOUT)
    except DataError as error:
        raise DataError(str(error).replace(str(path), called(path)).replace(path.name, called(path))) from None
