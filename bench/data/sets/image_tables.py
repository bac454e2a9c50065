"""Tables of images as other libraries write them.

`metadata.csv` and `metadata.jsonl` are those of an image folder of the library `datasets` (Hugging Face): `file_name`
stands for path and `label` for class. `datalist.json` and `dataset.json` are those of MONAI and of the Medical
Segmentation Decathlon: lists `training`, `validation` and `test` of objects with `image` and `label`. A label is a
class (a word, or a number that `labels` may name), or a list of marks, one a finding (1, 0 or null), whose names
`labels` gives by place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from bench.contract.source import DataError
from bench.data.csv_tables import read_table

LISTS = ("datalist.json", "dataset.json")
METADATA = ("metadata.csv", "metadata.jsonl", *LISTS)
PARTS = {"training": "train", "validation": "val", "test": "test", "testing": "test"}
_FIRST = {"metadata.csv": b"file_name", "metadata.jsonl": b"file_name"}
_LONGEST = 1 << 16


def other_table(place: Path) -> Path | None:
    """The first such table in a folder, if there is one."""
    return next((place / name for name in METADATA if _is_one(place / name)), None)


def read_other(table: Path) -> pd.DataFrame:
    """The table with this project's columns, all text.

    Raises DataError for a line or an entry that is no row.
    """
    if table.name in LISTS:
        return _datalist(table)
    names = {"file_name": "path", "label": "class"}
    cells = _json_lines(table) if table.suffix == ".jsonl" else read_table(table, ("file_name",), rest=True)
    return cells.rename(columns={old: new for old, new in names.items() if new not in cells.columns})


def _is_one(table: Path) -> bool:
    if not table.is_file():
        return False
    if table.name in LISTS:
        try:
            found = json.loads(table.read_bytes())
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(found, dict) and any(isinstance(found.get(part), list) for part in PARTS)
    with table.open("rb") as file:
        return _FIRST[table.name] in file.readline(_LONGEST)


def _json_lines(table: Path) -> pd.DataFrame:
    """A JSON object a line, with values as cells of text."""
    found: dict[int, dict[str, str]] = {}
    with table.open(encoding="utf-8-sig") as lines:
        for number, text in enumerate(lines, start=1):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError):
                row = None
            if not _is_plain(row) or not isinstance(row.get("file_name"), str):
                raise DataError(
                    f"{table}: line {number}: expected a JSON object of texts and numbers with file_name. Correct it"
                )
            found[number] = {name: _cell(value) for name, value in row.items()}
    return pd.DataFrame.from_dict(found, orient="index", dtype=str).fillna("")


def _datalist(table: Path) -> pd.DataFrame:
    """The entries of all parts, numbered from 1."""
    told = json.loads(table.read_bytes())
    named = told.get("labels")
    names = {str(key): str(value) for key, value in named.items()} if isinstance(named, dict) else {}
    found = [dict(_row(table, part, entry, names)) for part in PARTS for entry in told.get(part) or ()]
    return pd.DataFrame(found, index=range(1, len(found) + 1), dtype=str).fillna("")


def _row(table: Path, part: str, entry: object, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    row: dict[str, Any] = {"image": entry} if isinstance(entry, str) else dict(entry) if isinstance(entry, dict) else {}
    label = row.pop("label", None)
    marks = label if isinstance(label, list) else []
    if not _is_plain({**row, "label": None if marks else label}) or not isinstance(row.get("image"), str):
        raise DataError(f"{table}: {part}: expected objects with image, a file, and label, a class or a list of marks")
    if not all(mark in (0, 1, None) for mark in marks):
        raise DataError(f"{table}: {part}: a list of marks holds 1, 0 or null for each finding")
    yield "path", row.pop("image")
    yield "split", PARTS[part]
    yield from ((name, _cell(value)) for name, value in row.items() if name != "fold")
    if marks:
        yield from ((names.get(str(k), f"finding {k}"), _cell(mark)) for k, mark in enumerate(marks))
    elif label is not None:
        yield "class", names.get(_cell(label), _cell(label))


def _is_plain(row: object) -> bool:
    return isinstance(row, dict) and all(isinstance(value, str | int | float | None) for value in row.values())


def _cell(value: str | float | None) -> str:
    """A value of JSON as a CSV table would hold it."""
    return "" if value is None else str(int(value)) if isinstance(value, bool) else str(value)
