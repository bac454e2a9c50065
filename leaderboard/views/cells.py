"""A page a row: its records, where they were made, and the command that repeats them; and the same for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial

from leaderboard.edition import Edition
from leaderboard.environment import drawn
from leaderboard.lines import Line
from leaderboard.page import Page, inputs, plain
from leaderboard.row_data import dumped, full
from leaderboard.views.shared import common

MOST_PARTS = 150
"""Parts of one record's figures that its page lists; the downloads hold all."""


def cells(edition: Edition) -> Iterator[Page]:
    """The page and the data of every row, and the pictures of its records."""
    for line in edition.lines:
        cell = line.row.cell
        pictured = {where: name for where, name in edition.pictured.items() if where[0] == cell}
        told = inputs("cell", edition.described, edition.prints[line.id], sorted(pictured.values()), edition.dates)
        yield Page(
            f"cells/{line.id}.html", told,
            drawn("cell.html", **common(edition, "../"), line=line, row=line.row, pictured=pictured, most=MOST_PARTS),
        )  # fmt: skip
        tests = {
            edition.ids[other]: {name: asdict(apart) for name, apart in found.items()}
            for other, found in edition.ranking.tests.get(cell, {}).items()
        }  # fmt: skip
        yield Page(f"rows/{line.id}.js", inputs("row", told, tests), partial(_script, line, tests))
    for place, picture in edition.taken.pictures.items():
        yield plain(edition.pictured[place], picture)


def _script(line: Line, tests: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    return f"veil.row({dumped(full(line, tests))});\n"
