"""Pages that answer a question: which method fits, how two compare, how to read all this; and what they work on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from leaderboard.edition import Edition
from leaderboard.environment import drawn
from leaderboard.lines import Line
from leaderboard.page import Page, inputs
from leaderboard.row_data import DRAWN, brief, dumped
from leaderboard.views.shared import common, split

SHARD = 1200
"""Rows in one file of figures: half a megabyte."""


def tools(edition: Edition) -> Iterator[Page]:
    """The pages `choose`, `compare` and `reading`, and the files of figures."""
    files = list(shards(edition))
    yield from files
    for name in ("choose", "compare"):
        told = common(edition, "") | {"shards": [page.name for page in files]}
        yield Page(f"{name}.html", inputs(name, len(files), edition.dates), drawn(f"{name}.html", **told))
    yield Page(
        "reading.html", inputs("reading", edition.described, edition.dates),
        drawn("reading.html", **common(edition, "")),
    )  # fmt: skip


def shards(edition: Edition) -> Iterator[Page]:
    """Every row in a few figures, as scripts: pages opened from a disk may read nothing else."""
    titles = {part.slug: part.title for part in edition.parts}
    digits = {column.name: column.digits for column in edition.columns if column.name in DRAWN}
    for number, some in split(edition.lines, SHARD):
        told = [edition.prints[line.id] for line in some]
        yield Page(
            f"rows/all-{number}.js", inputs("rows", told, titles, digits), partial(_script, some, titles, digits)
        )


def _script(lines: Sequence[Line], titles: Mapping[str, str], digits: Mapping[str, int | None]) -> str:
    rows, told = dumped([brief(line) for line in lines]), (dumped(dict(each)) for each in (titles, digits))
    return f"veil.add({', '.join([rows, *told])});\n"
