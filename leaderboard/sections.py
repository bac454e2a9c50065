"""The board cut into data sets: rows stand in one table only if they were scored on the very same data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bench.results.records import DatasetRecord
from bench.workbench.choice import NO_PUBLIC, balanced, collection
from leaderboard.board import Row
from leaderboard.method_label import parameters_text
from leaderboard.slugs import digest, slug


@dataclass(frozen=True)
class Section:
    """The rows scored on one data set.

    Args:
        slug: Anchor and file stem.
        title: The data set's name, with parameters and, where another version stands beside it, its fingerprint.
        data: The data set; None where no row got as far as reading it.
        rows: In the order of the board.
        balanced: Whether surplus labels are withheld.
        splits: Per split: its name, and how many rows and people it holds in words ("300", or "300 to 1,000" where
            presets differ, "unknown" where nobody knows).
    """

    slug: str
    title: str
    data: DatasetRecord | None
    rows: tuple[Row, ...]
    balanced: bool
    splits: tuple[tuple[str, str, str], ...]


def sections(board: Sequence[Row]) -> list[Section]:
    """One section a data set, by name; different fingerprints are different data sets."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in board:
        groups.setdefault(_identity(row), []).append(row)
    for key in [
        key for key in groups if not key[1]
    ]:  # cells that never read their data join it where it is clear which
        known = [other for other in groups if other[0] == key[0] and other[1]]
        if len(known) == 1:
            groups[known[0]].extend(groups.pop(key))
    made = []
    for key in sorted(groups):
        told = sorted(groups[key], key=lambda row: not row.vouched)  # others may describe data as they like
        data = next((row.data for row in told if row.data), None)
        title = key[0]
        if data and data.parameters:
            title += f" [{parameters_text(data.parameters).replace(',', ', ')}]"
        if data and sum(other[:2] == key[:2] for other in groups) > 1:
            title += f" · {data.fingerprint[:8]} · "
            title += (
                "no public rows" if data.public == NO_PUBLIC else f"public {data.public} {data.public_fingerprint[:8]}"
            )
        made.append(
            Section(
                f"{slug(key[0])[:40]}-{digest('/'.join(key))}",
                title,
                data,
                tuple(groups[key]),
                balanced(groups[key][0].choice),
                _splits(groups[key]),
            )
        )
    return made


def _identity(row: Row) -> tuple[str, ...]:
    if row.data is None:
        return (row.dataset, "")
    told = json.dumps(collection(row.choice, row.data))
    return (row.dataset, json.dumps(row.data.parameters, sort_keys=True), told)


def _splits(rows: Sequence[Row]) -> tuple[tuple[str, str, str], ...]:
    seen = [row.data for row in rows if row.data]
    usual = ("public", "private", "control", "test")
    found = {name for data in seen for name in data.rows}
    names = [name for name in usual if name in found] + sorted(found.difference(usual))
    return tuple(
        (name, _range([data.rows.get(name) for data in seen]), _range([data.subjects.get(name) for data in seen]))
        for name in names
    )


def _range(counts: Sequence[int | None]) -> str:
    known = sorted({count for count in counts if count is not None})
    if not known:
        return "unknown"
    return f"{known[0]:,}" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,}"
