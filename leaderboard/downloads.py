"""The board's files of numbers, for links and for the build."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bench.results.records import dumps
from leaderboard.api import INDEX, SCHEMAS, index, row_file, schemas
from leaderboard.badges import badge_json, badge_svg
from leaderboard.board import Row
from leaderboard.citations import bibtex, citation_cff
from leaderboard.decisions import NAME as DECISIONS
from leaderboard.edition import Edition
from leaderboard.feed import atom
from leaderboard.latex import latex_tables
from leaderboard.tables import TablePart, can_write_parquet, parquet_bytes

FEED = "feed.xml"
PAGE = "index.html"
WITHOUT_PARQUET = "results.parquet and board.parquet are left out: pip install 'veil-bench[parquet]'"


@dataclass(frozen=True)
class Link:
    """A file of numbers as pages name it: address and content."""

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


def links(edition: Edition) -> list[Link]:
    """The links to downloads, in order; the index lists single rows' files."""
    tables = [Link(name, "a table for LaTeX") for name, _ in latex_tables(edition)]
    return [
        *_tables(edition.board_table, "one line a row: figure, interval and source of every metric", "as parquet"),
        *_tables(
            edition.results_table,
            "every figure on a line of its own, parts included, and every place without one (pandas, R and polars read "
            "it compressed as it is)",
            "every figure as parquet",
        ),
        Link(INDEX, "the static API: rows, columns, and where the file of each row stands; records with replicates"),
        *(Link(f"{SCHEMAS}{name}.json", f"the JSON Schema of {name} files") for name in schemas()),
        Link(DECISIONS, "every row and every file that was left out, with the decision and its reason"),
        Link(FEED, "an Atom feed of new rows"),
        Link("citations.bib", "BibTeX of this snapshot and of the papers behind it"),
        Link("CITATION.cff", "how to cite this snapshot"),
        *tables,
    ]


def badges(row: Row) -> tuple[str, str]:
    """Addresses of a row's badge, as a picture and as JSON."""
    return f"badges/{row.id}.svg", f"badges/{row.id}.json"


def files(edition: Edition) -> Iterator[Made]:
    """Every file of numbers of a board, without the manifest."""
    for part in (*edition.board_table, *edition.results_table):
        yield Made(part.name, None, partial(bytes, part.content))
        if can_write_parquet():
            yield Made(f"{part.stem}.parquet", None, partial(parquet_bytes, part.table))
    yield Made(INDEX, None, lambda: index(edition))
    for name, schema in schemas().items():
        yield Made(f"{SCHEMAS}{name}.json", None, partial(str, schema))
    yield Made(FEED, None, lambda: atom(edition, PAGE))
    yield Made("citations.bib", None, lambda: bibtex(edition))
    yield Made("CITATION.cff", None, lambda: citation_cff(edition))
    for name, text in latex_tables(edition):
        yield Made(name, None, partial(str, text))
    for row, data in zip(edition.board, edition.rows, strict=True):
        picture, badge = badges(row)
        yield Made(data.file, row, partial(row_file, data))
        yield Made(picture, row, partial(badge_svg, data))
        yield Made(badge, row, partial(badge_json, data))
        for record in row.records:
            yield Made(data.records[record.evaluator], row, partial(dumps, record))


def _tables(parts: Sequence[TablePart], meaning: str, as_parquet: str) -> Iterator[Link]:
    """The files of a table, with the data sets of each part."""
    of = [f"of {_named(part.values('dataset'))}" if len(parts) > 1 else "" for part in parts]
    for place, (part, told) in enumerate(zip(parts, of, strict=True)):
        yield Link(part.name, _said(meaning, told, place))
    for place, (part, told) in enumerate(zip(parts, of, strict=True)) if can_write_parquet() else ():
        yield Link(f"{part.stem}.parquet", _said(as_parquet, told, place))


def _said(meaning: str, told: str, place: int) -> str:
    """The description of a file; in full for the first part only."""
    return told if place else "; ".join(filter(None, (meaning, told)))


def _named(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]}"
