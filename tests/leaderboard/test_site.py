"""The site as files: what stands on every page, how large files get, and what a second build leaves alone."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import cast

import pytest
from made.board_records import auc, claim, dataset, guesswork, plugin, record, utility, word
from made.many_records import many

from bench.api.boards import build_board
from bench.results.records import Record, loads
from bench.results.results import Results
from leaderboard.comparison import compared
from leaderboard.edition import Edition
from leaderboard.environment import drawn
from leaderboard.intake import Intake
from leaderboard.pages import MOST_LINES, common, render
from leaderboard.site import build

Write = Callable[..., Results]
MEGABYTE = 1_000_000
HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='alert(1)", "javascript:alert(1)",
    "</script><script>alert(1)//", "{{ 7 * 7 }}", "{% raw %}", "\u2028\u2029", "]]><svg/onload=alert(1)>",
    "../../../etc/passwd", "%3Cscript%3E", "&lt;b&gt;", "=HYPERLINK(0)", "a\x00b", "C:\\con\\nul", "-->",
)  # fmt: skip


class Tags(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style") and data.strip():
            self.scripts.append(data)


def made(records: list[Record]) -> dict[str, str]:
    """Every page of some records that is text, by its name."""
    drawn = {name: page.make() for name, page in render(Edition.of(Intake(tuple(records), {}))).items()}
    return {name: text for name, text in drawn.items() if isinstance(text, str)}


@pytest.fixture(scope="module")
def some() -> dict[str, str]:
    return made(list(many(230)))


def test_every_page_forbids_scripts_of_its_own_and_the_network(some: dict[str, str]) -> None:
    for name, text in some.items():
        if name.endswith(".html"):
            tags = Tags(text)
            policies = [told["content"] for tag, told in tags.found
                        if tag == "meta" and told.get("http-equiv") == "Content-Security-Policy"]  # fmt: skip
            assert len(policies) == 1, name
            assert policies[0] is not None
            assert policies[0].startswith("default-src 'none'; script-src 'self'; style-src 'self';")
            assert tags.scripts == [], name
            assert not [told for _, told in tags.found if "style" in told or any(key.startswith("on") for key in told)]


def test_every_row_has_a_name_of_its_own_that_stays(some: dict[str, str]) -> None:
    ids = re.findall(r'<tr id="([^"]+)"', some["board.html"])
    assert len(ids) == len(set(ids)) == 21
    assert all(re.fullmatch(r"[a-z0-9-]+", one) for one in ids)
    assert ids == re.findall(r'<tr id="([^"]+)"', made(list(many(230)))["board.html"])
    assert all(f"cells/{one}.html" in some and f"rows/{one}.js" in some for one in ids)


@pytest.mark.parametrize("evil", HOSTILE)
def test_nothing_that_a_record_says_becomes_markup(evil: str) -> None:
    data = dataset(f"d{evil}", findings=[evil], notes=[evil], public=evil)
    told = {"dataset": data, "parameters": {evil: evil, "b": evil}, "threat_model": {evil: evil}}
    noted = auc(0.9).model_copy(update={"note": evil, "unit": evil})
    described = plugin(evil, {evil: evil}).model_copy(update={"source": evil, "origin": evil})
    records = [
        record(evil, evil, {"reid-auc": noted, "guesswork": guesswork(3)}, attack=described, **told),
        record(evil, "utility", {"utility-auc": utility(0.8, **{evil: 0.7})}, kind="utility", claim=claim(2.0), **told),
        record(evil, "sets", kind="sets", status="failed", reason=evil, phase=evil, **told),
        record("noise", evil, {"reid-auc": auc(0.5)}, attack=described, **told),
        word(evil, **told),
    ]
    bare = made([one.model_copy(update={"method": described}) if one.attack else one for one in records])
    harmless = made([record("a"), word("a")])
    known = {tag for text in harmless.values() for tag, _ in Tags(text).found} | {
        "a", "path", "circle", "title", "text", "svg", "polyline", "rect", "article", "h4", "img", "figure",
        "figcaption", "br", "wbr", "ul", "li", "dd", "dt", "b", "dl", "details", "summary", "aside", "em", "code",
        "strong",
    }  # fmt: skip
    for name, text in bare.items():
        assert re.fullmatch(r"[A-Za-z0-9./_-]+", name), name
        assert ".." not in name
        if name.endswith(".html"):
            tags = Tags(text)
            assert {tag for tag, _ in tags.found} <= known, name
            assert tags.scripts == []
            for _, attributes in tags.found:
                assert not [key for key in attributes if key.startswith("on") or key == "style"], name
                for key in ("href", "src"):
                    assert not (attributes.get(key) or "").lower().startswith(("javascript:", "http", "//")), name
        if name.endswith(".js") and name.startswith("rows/"):
            assert "<" not in text
            assert text.isascii()


def test_no_page_grows_past_a_megabyte(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many rows on one page as pages take: a tenth of them is measured, and counted ten times."""
    most, rows = MOST_LINES // 10, []
    for seed in range(most):
        rows += [record(f"a-method-of-some-length-{seed % 7}", scores={"guesswork": guesswork(9), "reid-auc": auc(0.7)},
                        seed=seed, parameters={"scale": 10.0, "variant": "corrected"}, claim=claim(2.0)),
                 record(f"a-method-of-some-length-{seed % 7}", "utility", {"utility-auc": utility(0.8)}, kind="utility",
                        seed=seed, parameters={"scale": 10.0, "variant": "corrected"}, claim=claim(2.0))]  # fmt: skip
    pages = made(rows)
    table = list(re.findall(r"<tr id=.*?</tr>", pages["board.html"], re.DOTALL))
    assert len(table) == most
    rest = len(pages["board.html"].encode()) - sum(len(text.encode()) for text in table)
    assert rest + 10 * sum(len(text.encode()) for text in table) < MEGABYTE


def flat(node: object) -> list[str]:
    """The texts in an element as plain data."""
    return [node] if isinstance(node, str) else [text for each in cast("list[object]", node)[2:] for text in flat(each)]


def test_more_rows_than_a_page_takes_stand_on_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaderboard.pages.MOST_LINES", 8)
    monkeypatch.setattr("leaderboard.pages.MOST_FRONT", 8)
    monkeypatch.setattr("leaderboard.pages.MOST_WIDE", 8)
    pages = made(list(many(220)))
    fronts = ["board.html", *sorted(name for name in pages if re.fullmatch(r"board-\d+\.html", name))]
    assert all(f'href="{name}"' in pages["board.html"] for name in fronts[1:])
    shown = [one for name in fronts for one in re.findall(r'<tr id="([^"]+)"', pages[name])]
    joined = [row for name in sorted(pages) if re.fullmatch(r"rows/lines-\d+\.js", name)
              for row in json.loads(pages[name][len("veil.more(") : -3])]  # fmt: skip
    assert len(shown) == len(set(shown)) == 17
    assert [row[1]["id"] for row in joined] == shown[8:]
    (first,) = re.findall(rf'<tr id="{shown[8]}".*?</tr>', pages["board-2.html"], re.DOTALL)
    told = html.unescape(re.sub("<[^>]+>", "", first))
    assert "".join("".join(flat(joined[0])).split()) == "".join(told.split())
    parts = [text for name, text in sorted(pages.items()) if re.fullmatch(r"data/data-00-\w{8}(-\d)?\.html", name)]
    ids = [one for text in parts for one in re.findall(r'<tr id="([^"]+)"', text)]
    assert len(parts) == 3
    assert len(ids) == len(set(ids)) == 20


def test_a_second_build_writes_only_what_changed(write: Write, tmp_path: Path) -> None:
    records = [record("a", scores={"guesswork": guesswork(9)}), record("b", scores={"guesswork": guesswork(5)})]
    site = build(write(*records), tmp_path / "site").parent

    def written() -> dict[str, int]:
        return {
            path.relative_to(site).as_posix(): path.stat().st_mtime_ns for path in site.rglob("*") if path.is_file()
        }

    before = written()
    build(write(), site)
    assert {name for name, when in written().items() if when != before[name]} == set()
    before = written()
    build(write(record("b", "utility", {"utility-auc": utility(0.8)}, kind="utility")), site)
    changed = {name for name, when in written().items() if when != before.get(name)}
    assert any(name.startswith("cells/b-") for name in changed)
    assert "methods/b.html" in changed
    assert "index.html" in changed


def test_what_has_not_changed_is_not_even_read(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = write(record("a", scores={"guesswork": guesswork(9)}))
    build(results, tmp_path / "site")
    monkeypatch.setattr("leaderboard.site.intake", lambda *_, **__: pytest.fail("the records were read"))
    build(results, tmp_path / "site")
    monkeypatch.undo()
    build(results, tmp_path / "site", refused=[("x.bundle", "it is no bundle")])
    assert "x.bundle" in (tmp_path / "site" / "board-manifest.json").read_text()


def test_the_command_reads_and_checks_each_record_once(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = write(record("a", scores={"guesswork": guesswork(9)}), record("b", scores={"guesswork": guesswork(5)}))
    read: list[str] = []
    monkeypatch.setattr(
        "bench.results.results.loads", lambda text, where, *more: read.append(where) or loads(text, where)
    )
    index, refused = build_board(results.root, tmp_path / "site")
    assert index.is_file()
    assert refused == []
    assert len(read) == len(set(read)) == 2


def test_a_page_that_was_altered_is_made_anew(write: Write, tmp_path: Path) -> None:
    results = write(record("a", scores={"guesswork": guesswork(9)}))
    index = build(results, tmp_path / "site")
    text = index.read_text(encoding="utf-8")
    index.write_text("")
    build(results, tmp_path / "site")
    assert index.read_text(encoding="utf-8") == text


def test_reference_methods_stand_apart_and_have_no_rank() -> None:
    edition = Edition.of(Intake(tuple(many(230)), {}))
    references = [row for row in edition.lines if row.reference]
    assert {row.plugin for row in references} == {"identity", "noise", "hidden-control"}
    assert not any(row.utility_rank or row.privacy_rank for row in references)
    assert all(row.utility_rank for row in edition.lines if not row.reference and row.data == "data-00")


def test_a_row_says_of_which_others_it_is_told_apart() -> None:
    edition = Edition.of(Intake(tuple(many(220)), {}))
    row = next(row for row in edition.lines if row.utility_rank)
    assert row.utility_rank is not None
    low, high, of = row.utility_rank
    sure = sum(found["utility-auc"].p < 0.05 for found in row.tests.values())
    assert high - low == of - 1 - sure


def test_a_rank_says_of_how_many_by_what_and_why_any_is_possible() -> None:
    edition = Edition.of(Intake(tuple(many(220)), {}))
    row = next(row for row in edition.lines if row.utility_rank and row.privacy == "guesswork")
    row.figures["membership-auc"] = row.figures["guesswork"]
    named = {**edition.named, "membership-auc": edition.named["guesswork"]}
    keys = len(edition.row_of(row).entries["utility-auc"].score.replicates.by_key)  # type: ignore[union-attr]
    some = [row.model_copy(update=update) for update in (
        {"utility_rank": (1, 19, 19), "privacy": "membership-auc", "privacy_rank": (1, 2, 3)},
        {"utility_rank": (2, 2, 19), "privacy": "guesswork", "privacy_rank": (1, 1, 10)},
        {"utility_rank": None},
    )]  # fmt: skip
    assert [one.rank("utility_rank") for one in some] == [
        ("any", f"of 19: tests over {keys} keys exclude none"), ("2", "of 19"), ("", "")
    ]  # fmt: skip
    assert [" ".join(one.rank("privacy_rank")) for one in some[:2]] == ["1–2 of 3 by members", "1 of 10 by guesses"]
    shown = drawn("rows.html", **common(edition, "") | {"named": named}, lines=some, one=True, hidden=[])()
    assert '1–2 <span class="quiet">of 3 by members</span>' in shown
    places = [float(place) for place in re.findall(r'c-privacy-rank aside" data-s="([\d.]+)"', shown)]
    assert places[0] > places[1], "members are not sorted among guesses"


def test_a_line_keeps_its_name_where_the_records_change() -> None:
    one = Edition.of(Intake((record("a", scores={"guesswork": guesswork(9)}),), {}))
    changed = record("a", scores={"guesswork": guesswork(3)}, created="2026-01-01T00:00:00Z")
    other = Edition.of(replace(one.taken, records=(changed,)))
    assert one.lines[0].id == other.lines[0].id
    assert one.prints != other.prints


def test_differences_on_pages_are_those_of_the_terminal() -> None:
    edition = Edition.of(Intake(tuple(many(220)), {}))
    seen = set()
    by_id = {row.id: row for row in edition.board}
    for row in edition.rows:
        for other, found in row.tests.items():
            for metric, one in found.items():
                a, b = by_id[row.id], by_id[other]
                if a.entries[metric].by == b.entries[metric].by:
                    (told,) = compared(a, b, [metric], a.entries[metric].by)
                    assert told.paired is not None
                    wanted = (told.paired.value, told.paired.low, told.paired.high)
                    assert (one.value, one.low, one.high) == pytest.approx(wanted)
                    assert one.ratio == told.paired.ratio
                    seen.add(metric)
    assert seen == {"utility-auc", "guesswork"}
