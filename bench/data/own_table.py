"""The table of a folder of one's own, and tables beside its class folders that nobody reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.contract.source import DataError

_TABLES = frozenset({".csv", ".tsv", ".xls", ".xlsx", ".ods"})


def unread_tables(files: Iterable[Path]) -> int:
    """How many tables lie beside class folders; DataError where one is meant to list the images, by its name."""
    found = [path for path in files if not _TABLES.isdisjoint(map(str.lower, path.suffixes))]
    meant = sum(path.name.lower().partition(".")[0].strip() == "labels" for path in found)
    if meant:
        raise DataError(
            f"folder: expected class sub-folders, or a table called labels.csv, found {meant} files called labels with "
            f"other capitals or another ending: save it as labels.csv, or take it away to read the class sub-folders"
        )
    return len(found)


def table_of(place: Path) -> Path | None:
    """The table that lists the images of a place, or that the place is; None for class folders."""
    if place.is_file():
        return place
    table = place / "labels.csv"
    return table if table.exists() or table.is_symlink() else None
