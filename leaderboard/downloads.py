"""What can be taken from a board: the one list of its files of numbers, which pages link to and a build writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bench.results.records import dumps
from leaderboard.board import Row
from leaderboard.decisions import NAME as DECISIONS
from leaderboard.numbers.api import INDEX, SCHEMAS, index, record_address, row_address, row_file, schemas
from leaderboard.numbers.badges import badge_json, badge_svg
from leaderboard.numbers.citations import bibtex, citation_cff
from leaderboard.numbers.feed import atom
from leaderboard.numbers.latex import latex_tables
from leaderboard.numbers.score_lines import score_lines
from leaderboard.numbers.shown import Shown
from leaderboard.numbers.tables import Table, can_write_parquet, csv_text, of_scores, parquet_bytes
from leaderboard.numbers.wide import wide

FEED = "feed.xml"
PAGE = "index.html"
WITHOUT_PARQUET = "results.parquet and board.parquet are left out: pip install 'veil-bench[parquet]'"


@dataclass(frozen=True)
class Link:
    """A file of numbers as pages name it: where it stands below its board, and what it holds."""

    path: str
    meaning: str


@dataclass(frozen=True)
class Made:
    """A file of numbers, not yet made.

    Args:
        name: Below its board.
        row: The one row that it is made from; None where it is made from all.
        make: Gives its content.
    """

    name: str
    row: Row | None
    make: Callable[[], str | bytes]


def links(shown: Shown) -> list[Link]:
    """What pages link to, in order; files of single rows are found through the index."""
    parquet = [
        Link("board.parquet", "the same as parquet"),
        Link("results.parquet", "every figure as parquet"),
    ] if can_write_parquet() else []  # fmt: skip
    tables = [Link(name, f"a table for LaTeX: {name.removeprefix('latex/')}") for name, _ in latex_tables(shown)]
    return [
        Link("board.csv", "a line a row: every metric's figure, interval and source"),
        Link("results.csv", "every figure on a line of its own, parts included, and every place without one"),
        *parquet,
        Link(INDEX, "the static API: rows, columns, and where the file of each row stands; records with replicates"),
        *(Link(f"{SCHEMAS}{name}.json", f"the JSON Schema of {name} files") for name in schemas()),
        Link(DECISIONS, "every row and every file that was left out, with the decision and its reason"),
        Link(FEED, "an Atom feed of new rows"),
        Link("citations.bib", "BibTeX of this snapshot and of the papers behind it"),
        Link("CITATION.cff", "how to cite this snapshot"),
        *tables,
    ]


def badges(row: Row) -> tuple[str, str]:
    """Where a row's badge stands below its board: as a picture, and as JSON for badge services."""
    return f"badges/{row.id}.svg", f"badges/{row.id}.json"


def files(shown: Shown) -> Iterator[Made]:
    """Every file of numbers of a board, but the manifest, which speaks of all boards."""
    yield Made("board.csv", None, lambda: csv_text(wide(shown)))
    yield Made("results.csv", None, lambda: csv_text(_scores(shown)))
    if can_write_parquet():
        yield Made("board.parquet", None, lambda: parquet_bytes(wide(shown)))
        yield Made("results.parquet", None, lambda: parquet_bytes(_scores(shown)))
    yield Made(INDEX, None, lambda: index(shown))
    for name, schema in schemas().items():
        yield Made(f"{SCHEMAS}{name}.json", None, partial(str, schema))
    yield Made(FEED, None, lambda: atom(shown, PAGE))
    yield Made("citations.bib", None, lambda: bibtex(shown))
    yield Made("CITATION.cff", None, lambda: citation_cff(shown))
    for name, text in latex_tables(shown):
        yield Made(name, None, partial(str, text))
    for row in shown.taken.rows:
        tier = shown.taken.tier(row)
        picture, told = badges(row)
        yield Made(row_address(row), row, partial(row_file, row, shown.taken))
        yield Made(picture, row, partial(badge_svg, row, tier))
        yield Made(told, row, partial(badge_json, row, tier))
        for record in row.records:
            yield Made(record_address(row, record.evaluator), row, partial(dumps, record))


def _scores(shown: Shown) -> Table:
    return of_scores(score_lines((row.id, record) for row in shown.taken.rows for record in row.records))
