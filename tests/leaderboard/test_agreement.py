"""Every form in which the published figures go out says what the raw records say: pages, tables, API, LaTeX, badges.

The records are read here as plain JSON, by nothing that the board is made with.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow.parquet
import pytest
from markupsafe import escape

from leaderboard import site
from leaderboard.edition import Edition
from leaderboard.entries import number
from leaderboard.escapes import tex
from leaderboard.intake import boards, intake
from leaderboard.packed_rows import published_results, read_row, row_file
from leaderboard.pages import Page
from leaderboard.published import PUBLISHED
from leaderboard.reproduction import VERDICTS, shipped
from leaderboard.row_schema import BoardRow

ROWS = 6
ENDS = ("value", "low", "high")
CELLS: dict[str, str] = {}


@pytest.fixture(scope="module")
def published() -> tuple[list[BoardRow], Mapping[str, Page]]:
    """A few rows of the published board, far apart, and every file of its site."""
    taken = intake(published_results(PUBLISHED))
    edition = Edition.of(next(iter(boards(taken).values())))
    CELLS.update({row.id: row.cell for row in edition.board})
    lines = [row for row in edition.lines if row.applies]
    return lines[:: max(1, len(lines) // ROWS)], site.files(taken)


def content(pages: Mapping[str, Page], name: str) -> bytes:
    made = pages[name].make()
    return made.encode() if isinstance(made, str) else made


@cache
def texts(cell: str) -> Mapping[str, bytes]:
    """The bytes of a published row's records, by evaluator."""
    return read_row(row_file(PUBLISHED, cell)).records


def raw(line: BoardRow) -> dict[str, dict[str, Any]]:
    """The records of a row by the names of their files."""
    return {name: json.loads(text) for name, text in texts(CELLS[line.id]).items()}


def shown(line: BoardRow) -> dict[str, tuple[str, dict[str, Any]]]:
    """Of every metric of a row the record that its figure is from, and the figure in it."""
    records = raw(line)
    return {
        name: (figure.by, records[figure.by]["scores"][name])
        for name, figure in line.figures.items()
        if figure.value is not None
    }


def table(pages: Mapping[str, Page], name: str) -> list[dict[str, str]]:
    """A table of the board, whatever parts it stands in."""
    files = [each["file"] for each in json.loads(content(pages, "api/index.json"))["tables"] if each["table"] == name]
    found: list[dict[str, str]] = []
    for each in files:
        text = content(pages, each)
        plain = (gzip.decompress(text) if each.endswith(".gz") else text).decode()
        found += csv.DictReader(io.StringIO(plain, newline=""))
    return found


def floats(*values: Any) -> list[float | None]:
    return [None if value in ("", None) else float(value) for value in values]


def test_tables_say_what_the_records_say(published: tuple[list[BoardRow], Mapping[str, Page]]) -> None:
    lines, pages = published
    board = {line["row"]: line for line in table(pages, "board")}
    results = {
        (line["row"], line["evaluator"], line["metric"]): line for line in table(pages, "results") if not line["part"]
    }
    for line in lines:
        assert shown(line)
        for metric, (by, figure) in shown(line).items():
            wanted = floats(*(figure[end] for end in ENDS))
            mine = board[line.id]
            assert floats(mine[metric], mine[f"{metric}: low"], mine[f"{metric}: high"]) == wanted
            assert mine[f"{metric}: by"] == by
            long = results[line.id, by, metric]
            assert floats(*(long[end] for end in ENDS)) == wanted
            assert long["n"] == str(figure["n"])
            assert long["device"] == mine["device"] == line.device
        told = {(line.id, by, metric) for by, record in raw(line).items() for metric in record["scores"]}
        withheld = {key for key in told if not results[key]["value"]}
        assert all(results[key]["reason"].startswith("withheld: ") for key in withheld)
        assert told - withheld == {key for key, long in results.items() if key[0] == line.id and long["value"]}
        assert len(withheld) < len(told) / 10


def test_parquet_says_what_csv_says(published: tuple[list[BoardRow], Mapping[str, Page]]) -> None:
    _, pages = published
    for name in ("board", "results"):
        stems = [each["file"].partition(".")[0] for each in json.loads(content(pages, "api/index.json"))["tables"]
                 if each["table"] == name]  # fmt: skip
        held = [
            line
            for stem in stems
            for line in pyarrow.parquet.read_table(io.BytesIO(content(pages, f"{stem}.parquet"))).to_pylist()
        ]
        plain = table(pages, name)
        assert len(held) == len(plain) > ROWS
        for line, other in zip(held[::ROWS], plain[::ROWS], strict=True):
            assert {key: "" if value is None else str(value).lstrip("'") for key, value in line.items()} == {
                key: value.lstrip("'") for key, value in other.items()
            }


def test_the_api_says_what_the_records_say_and_holds_them(published: tuple[list[BoardRow], Mapping[str, Page]]) -> None:
    lines, pages = published
    for line in lines:
        told = json.loads(content(pages, f"api/rows/{line.id}.json"))
        assert told["device"] == line.device
        for metric, (by, figure) in shown(line).items():
            assert [told["figures"][metric][end] for end in ENDS] == [figure[end] for end in ENDS]
            assert told["figures"][metric]["by"] == by
        for name, text in texts(CELLS[line.id]).items():
            assert content(pages, told["records"][name]) == text


def test_pages_and_latex_print_the_figures_of_the_records(
    published: tuple[list[BoardRow], Mapping[str, Page]],
) -> None:
    lines, pages = published
    front = content(pages, "board.html").decode()
    papers = [content(pages, name).decode() for name in pages if re.fullmatch(r"latex/[^/]+\.tex", name)]
    columns = {
        one["name"]: one for one in json.loads(content(pages, "rows/schema.js")[len("veil.schema(") : -3])["columns"]
    }
    for line in lines:
        page = content(pages, f"cells/{line.id}.html").decode()
        opened = json.loads(content(pages, f"rows/{line.id}.js").decode()[len("veil.row(") : -3])
        (row,) = re.findall(rf'<tr id="{line.id}".*?</tr>', front, re.DOTALL)
        for metric, (_, figure) in shown(line).items():
            text = number(figure["value"], columns[metric]["digits"])
            assert [opened["figures"][metric].get(end) for end in ENDS] == [figure[end] for end in ENDS]
            assert f'<td class="value">{text}</td>' in page
            if metric in (line.utility, line.privacy, line.person):
                assert f'<span class="value">{text}</span>' in row
                assert any(f"{tex(text)}" in paper for paper in papers)


def test_verdict_and_tier_are_the_same_everywhere(published: tuple[list[BoardRow], Mapping[str, Page]]) -> None:
    lines, pages = published
    board = {line["row"]: line for line in table(pages, "board")}
    decided = {row["id"]: row for row in json.loads(content(pages, "board-manifest.json"))["rows"]}
    for line in lines:
        word, tier = line.verdict, line.tier
        told = json.loads(content(pages, f"api/rows/{line.id}.json"))
        assert (board[line.id]["verdict"], board[line.id]["tier"]) == (told["verdict"], told["tier"]) == (word, tier)
        assert decided[line.id]["tier"] == tier
        (row,) = re.findall(rf'<tr id="{line.id}".*?</tr>', content(pages, "board.html").decode(), re.DOTALL)
        assert f'data-verdict="{word}"' in row
        badge = json.loads(content(pages, f"badges/{line.id}.json"))["message"]
        assert badge.startswith("reference" if line.reference else line.label)
        assert badge.endswith(tier)
        assert badge in content(pages, f"badges/{line.id}.svg").decode()
        assert content(pages, f"cells/{line.id}.html").decode().count(f"</b> {line.label}</span>") == 1


def test_the_ledger_prints_figures_as_the_rows_do(published: tuple[list[BoardRow], Mapping[str, Page]]) -> None:
    _, pages = published
    page = content(pages, "reproduction.html").decode()
    quoted = [one for _, _, row in shipped().rows() for one in row.ours if one.record is not None]
    for one in quoted:
        cell, _, evaluator = one.record.rpartition("/")
        record = json.loads(texts(cell)[evaluator])
        if one.score in record["scores"]:
            text = number(record["scores"][one.score]["value"], record["metrics"][one.score]["digits"])
            assert re.search(rf"{re.escape(escape(one.what))}: <b>{text}</b>", page)
    assert quoted


def test_counts_of_what_is_folded_add_up(published: tuple[list[BoardRow], Mapping[str, Page]]) -> None:
    _, pages = published
    listed = dict(
        re.findall(r'<a href="([^"]+)\.html">.*<td[^>]*>(\d+)</td></tr>', content(pages, "attacks/index.html").decode())
    )
    assert listed
    for stem, count in listed.items():
        page = content(pages, f"attacks/{stem}.html").decode()
        folded = [int(found) for found in re.findall(r"</h3> (\d+) rows?</summary>", page)]
        assert sum(folded) == int(count) == page.count('<tr><th scope="row"><a href="../cells/')
    ledger = content(pages, "reproduction.html").decode()
    for paper in shipped().papers:
        (block,) = re.findall(rf'<section class="block" id="{paper.id}">.*?</section>', ledger, re.DOTALL)
        for verdict in VERDICTS:
            told = [int(found) for found in re.findall(rf">(\d+) {verdict}</span>", block)]
            assert sum(told) == paper.count(verdict) == block.count(f'<span class="ledger {verdict}">{verdict}</span>')
