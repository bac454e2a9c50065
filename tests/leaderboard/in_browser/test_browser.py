"""The pages as people meet them: on phones and wide screens, by keyboard, without scripts, and with what they chose."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made.board_records import dataset, guesswork, record, score, utility, word

from bench.results.records import dumps
from bench.results.results import Results
from leaderboard.site import build

Visit = Callable[..., Any]
WIDTHS = (390,), (768, 1440, 1920, 3840)
"""Pages ask once, as they load, whether they are on a phone; all else follows the width."""
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Twice: what watches sizes is told between frames."""


def kinds(site: Path) -> list[str]:
    """A page of every kind."""
    found = [
        "index.html",
        "board.html",
        "choose.html",
        "compare.html",
        "reading.html",
        "data/index.html",
        "attacks/index.html",
    ]
    for pattern in ("data/data-00-*.html", "methods/*-01.html", "attacks/c*.html", "cells/method-01-*.html"):
        found += [path.relative_to(site).as_posix() for path in sorted(site.glob(pattern))[:3]]
    return found


@pytest.mark.parametrize("widths", WIDTHS)
def test_no_page_scrolls_sideways(visit: Visit, site: Path, widths: tuple[int, ...]) -> None:
    page = visit("board.html", widths[0])
    for name in kinds(site):
        page.set_viewport_size({"width": widths[0], "height": 900})
        page.goto((site / name).as_uri())
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(DRAWN)
            assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [width, width], (name, width)


def assert_narrow(chromium: Any, folder: Path) -> None:
    """No page of the results in the folder is wider than a phone."""
    site = build(Results(folder / "results"), folder / "site").parent
    page = chromium.new_page(viewport={"width": 390, "height": 900})
    for path in site.rglob("*.html"):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path.name
    page.close()


def test_no_page_scrolls_sideways_for_a_long_name(chromium: Any, tmp_path: Path) -> None:
    cell = tmp_path / "results" / "cells" / "d" / "long"
    cell.mkdir(parents=True)
    (cell / "contrastive.json").write_text(dumps(record("W" * 300, cell="d/long")), encoding="utf-8")
    assert_narrow(chromium, tmp_path)


def test_no_page_scrolls_sideways_for_a_huge_figure(chromium: Any, tmp_path: Path) -> None:
    cell = tmp_path / "results" / "cells" / "d" / "huge"
    cell.mkdir(parents=True)
    told = {"decoding-error": score(1.7e308, better="higher", unit="share", low=-1e308, high=1.79e308)}
    (cell / "decoding.json").write_text(dumps(record("huge", "decoding", told, cell="d/huge")), encoding="utf-8")
    assert_narrow(chromium, tmp_path)


def test_old_addresses_of_the_front_page_lead_to_every_row(visit: Visit, site: Path) -> None:
    page = visit("index.html?q=method-03")
    page.wait_for_url("**/board.html?q=method-03")
    row = next(site.glob("rows/method-01-*.js")).stem
    page.goto(f"{(site / 'index.html').as_uri()}#{row}")
    page.wait_for_url(f"**/board.html#{row}")


@pytest.mark.parametrize("script", [True, False])
def test_tabs_show_one_data_set_at_a_time_and_paper_shows_all(visit: Visit, script: bool) -> None:
    page = visit("index.html", script=script)
    every = page.locator(".sets > .set")
    assert every.count() > 1
    shown = [page.locator(".sets > .set:visible").get_attribute("id")]
    page.locator(".tabs a:visible").nth(1).click()
    shown.append(page.locator(".sets > .set:visible").get_attribute("id"))
    assert shown == [every.nth(0).get_attribute("id"), every.nth(1).get_attribute("id")]
    assert "index.html#" in page.url
    page.emulate_media(media="print")
    assert page.locator(".sets > .set:visible").count() == every.count()


LONGEST = "no membership leak above .53 shown"
"""The longest verdict that has a number."""
WIDEST = {
    ".c-dataset": "nih under other-study", ".c-verdict .verdict": "≲ no membership leak above .53 shown",
    ".c-utility": "0.649 0.598–0.697", ".c-privacy": "0.511 AUC chance 0.500", ".c-utility-rank": "12–17 of 19",
    ".c-privacy-rank": "1–2 of 3 by members", ".c-person": "not applicable worst member", ".c-claimed": "1,735",
    ".c-derived": "1,735",
}  # fmt: skip
"""Texts of the board as long as they were, by their columns."""
FITS = "table => table.closest('.scroll').scrollWidth <= table.closest('.scroll').clientWidth"


def test_the_board_and_the_first_table_are_whole_on_a_screen_and_on_a_small_one(visit: Visit) -> None:
    write = "(row, texts) => texts.forEach(([name, text]) => { row.querySelector(name).textContent = text; })"
    for width in (1024, 1440):
        page = visit("board.html", width)
        page.locator("#board tbody tr").first.evaluate(write, list(WIDEST.items()))
        assert page.locator("#board").evaluate(FITS), width
    page = visit("index.html", 1024)
    row = page.locator(".brief-rows tbody tr").first
    row.locator(".verdict").evaluate("(verdict, text) => { verdict.textContent = text; }", LONGEST)
    assert page.locator(".brief-rows").first.evaluate(FITS)


def test_a_wide_screen_is_used(visit: Visit) -> None:
    page = visit("board.html", 3840)
    assert page.locator("#board").bounding_box()["width"] > 3000
    cut = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent)"
    assert page.eval_on_selector_all("#board tbody tr[id]:not([hidden]) .c-method", cut) == []


def test_a_search_that_nothing_fits_says_so(visit: Visit) -> None:
    page = visit("board.html?q=no-such-method")
    said = page.locator("#board-title ~ .empty, section.rows > .empty").first
    assert said.inner_text() == "No row fits what is asked for. Clear"
    page.get_by_label("Find").fill("")
    assert said.is_hidden()
    assert page.locator("#board tbody tr").count() > 20


def test_a_search_wants_every_word_wherever_it_stands(visit: Visit) -> None:
    page = visit("board.html?q=data-01+METHOD-03")
    found = page.locator("#board tbody tr[id]:not([hidden])")
    assert found.count() == 1
    assert "method-03" in found.first.inner_text()
    assert "data-01" in found.first.inner_text()


def test_a_board_on_paper_is_no_wider_than_it(visit: Visit) -> None:
    page = visit("board.html", 1030)  # A4 across, without its margins
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1030


def test_the_words_of_a_picture_can_be_read_on_a_phone(visit: Visit, site: Path) -> None:
    name = next(path.relative_to(site) for path in site.glob("data/*.html") if "svg" in path.read_text())
    page = visit(str(name), 390)
    told = page.evaluate(
        "Array.from(document.querySelectorAll('svg.scatter text'), text => text.getBoundingClientRect().height)"
        ".filter(height => height > 0)"
    )
    assert told
    assert min(told) >= 9


def test_no_page_scrolls_sideways_with_an_opened_row(visit: Visit, site: Path) -> None:
    row = next(site.glob("rows/method-01-*.js")).stem
    page = visit(f"index.html?open={row}", 390)
    page.wait_for_selector(".more .facts")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Visit, site: Path, axe: str, scheme: str) -> None:
    page = visit("board.html", 1440, scheme)
    for name in kinds(site):
        page.goto((site / name).as_uri())
        page.wait_for_load_state("load")
        page.evaluate(axe)
        found = page.evaluate(
            "axe.run({ preload: false }).then(found => found.violations.map(v => [v.impact, v.id, v.nodes[0].html]))"
        )
        assert [each for each in found if each[0] in ("serious", "critical")] == [], name


def test_a_row_is_whole_on_the_first_screen(visit: Visit) -> None:
    page = visit("board.html")
    box = page.locator("#board tbody tr").nth(9).bounding_box()
    assert box["y"] + box["height"] <= 900
    assert box["x"] + box["width"] <= 1440


@pytest.mark.parametrize("script", [True, False])
def test_a_row_takes_two_lines_of_a_phone_until_it_is_opened(visit: Visit, script: bool) -> None:
    """Method and verdict; data, utility and the worst privacy figure. Two lines of parameters are the most."""
    page = visit("board.html", 390, script=script)
    lines = "rows => rows.map(row => row.offsetHeight / parseFloat(getComputedStyle(row).lineHeight))"
    heights = page.eval_on_selector_all("#board tbody tr[id]:not([hidden])", lines)
    assert max(heights) < 4, "with the space around them"
    row = page.locator("#board tbody tr").first
    for shown in ("verdict", "utility", "privacy"):
        assert row.locator(f".c-{shown}").is_visible()
    assert row.locator(".c-tier").is_hidden()
    if script:
        row.locator(".c-verdict").click()
        page.wait_for_selector(".more .facts")
        assert row.locator(".c-tier").is_visible()
        assert row.locator(".c-device").is_visible()
    page.emulate_media(media="print")
    assert page.locator("#board tbody tr[id] .c-derived").last.is_visible()
    assert page.get_by_text("Tier of every row: self-reported").first.is_visible()  # in place of a column of one word


WHOLE = """(cells, text) => cells.map(cell => {
    const verdict = cell.querySelector(".verdict");
    verdict.lastChild.textContent = " " + text;
    const range = document.createRange();
    range.selectNodeContents(verdict);
    return range.getBoundingClientRect().right <= cell.getBoundingClientRect().right;
})"""


def test_a_verdict_is_whole_on_a_phone(visit: Visit) -> None:
    for name, cells in (
        ("board.html", "#board .c-verdict:has(.verdict)"),
        ("index.html", ".brief-rows td:has(.verdict)"),
    ):
        page = visit(name, 390)
        whole = page.eval_on_selector_all(f"{cells}:not(.set ~ .set *)", WHOLE, LONGEST)
        assert whole
        assert all(whole), name


def test_the_share_of_an_attack_is_whole_on_a_phone(visit: Visit) -> None:
    page = visit("attacks/index.html", 390)
    table = page.locator(".scroll").first
    assert table.evaluate("table => table.scrollWidth <= table.clientWidth")
    assert "Share of rows" in table.locator("td").nth(1).evaluate("cell => cell.dataset.label")


def test_a_phone_shows_what_it_sorts_by_and_the_columns_asked_for(visit: Visit) -> None:
    page = visit("board.html?sort=claimed", 390)
    row = page.locator("#board tbody tr").first
    assert row.locator(".c-claimed").is_visible()
    assert not row.locator(".c-tier").is_visible()
    page.locator("details.columns summary").click()
    page.locator("details.columns").get_by_label("Tier", exact=True).check()
    assert row.locator(".c-tier").is_visible()
    assert not row.locator(".c-person").is_visible()
    assert "tier" not in page.url
    page.reload()
    assert row.locator(".c-tier").is_visible()


def test_the_state_is_in_the_address_and_survives_a_reload(visit: Visit) -> None:
    page = visit("board.html")
    page.locator(".controls label:has(> select)", has_text="Verdict all").locator("select").select_option("broken")
    page.locator("#board th.c-utility button").click()
    page.locator("details.columns summary").click()
    page.locator("details.columns").get_by_label("Tier", exact=True).uncheck()
    page.locator("#board tbody tr:not([hidden]) .opener").first.click()
    page.wait_for_selector(".more .facts")

    def shown() -> list[str]:
        return page.eval_on_selector_all("#board tbody tr[id]:not([hidden])", "rows => rows.map(row => row.id)")

    before = shown()
    assert "verdict=broken" in page.url
    assert "sort=-utility" in page.url
    page.reload()
    page.wait_for_selector(".more .facts")
    assert shown() == before
    assert page.locator("#board td.c-tier").first.is_hidden()
    figures = page.eval_on_selector_all(
        "#board tbody tr[id]:not([hidden]) .c-utility", "all => all.map(one => Number(one.dataset.s))"
    )
    assert figures == sorted(figures, reverse=True)
    page.emulate_media(media="print")
    assert page.locator(".more .facts").first.is_visible()


def test_rows_are_opened_and_sorted_by_keyboard_alone(visit: Visit) -> None:
    page = visit("board.html")
    page.locator("#board tbody .opener").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".more .facts")
    assert page.locator("#board tbody .opener").first.get_attribute("aria-expanded") == "true"
    page.locator("#board th.c-person button").focus()
    page.keyboard.press("Space")
    assert page.locator("#board th.c-person").get_attribute("aria-sort") == "ascending"


def test_the_board_is_complete_without_scripts(visit: Visit) -> None:
    page = visit("board.html", script=False)
    assert page.locator("#board tbody tr").count() > 20
    assert page.locator("svg.scatter a.mark").count() > 5
    assert page.locator("svg.scatter").first.is_visible()


def test_the_picture_is_of_the_same_data_with_scripts_as_without(chromium: Any, tmp_path: Path) -> None:
    """Here one set has more rows, and the other more with a utility: that is shown."""
    (tmp_path / "results").mkdir()
    for name, rows, drawn in (("wide", 4, 1), ("full", 2, 2)):
        for number in range(rows):
            cell = f"{name}/{number}"
            folder = tmp_path / "results" / "cells" / cell
            folder.mkdir(parents=True)
            more: dict[str, Any] = {"cell": cell, "dataset": dataset(name)}
            made = [
                word(f"m{number}", **more),
                record(f"m{number}", "contrastive", {"guesswork": guesswork(9.0)}, **more),
            ]
            if number < drawn:
                made.append(record(f"m{number}", "utility", {"utility-auc": utility(0.8)}, kind="utility", **more))
            for each in made:
                (folder / f"{each.evaluator}.json").write_text(dumps(each), encoding="utf-8")
    site = build(Results(tmp_path / "results"), tmp_path / "site").parent
    still = chromium.new_context(java_script_enabled=False).new_page()
    still.goto((site / "board.html").as_uri())
    moving = chromium.new_page()
    moving.set_default_timeout(60_000)  # a load of ten
    moving.goto((site / "board.html").as_uri())
    moving.wait_for_selector(".plot select")
    shown = moving.locator(".plot select").first.evaluate("list => list.selectedOptions[0].textContent")
    assert still.locator(".plot figcaption").inner_text().split(",")[0] == shown.split(",")[0]
    assert shown.startswith("full")
    still.close()
    moving.close()


def test_a_board_in_several_pages_is_joined_by_scripts_and_linked_without(visit: Visit, paged: Path) -> None:
    page = visit((paged / "board.html").as_posix(), script=False)
    first = page.locator("#board tbody tr").count()
    page.locator("nav.pager a", has_text="2").first.click()
    page.wait_for_url("**/board-2.html")
    assert page.locator("#board tbody tr").count() > 0
    page = visit((paged / "board.html").as_posix())
    page.wait_for_selector(".controls")
    assert page.locator("nav.pager").count() == 0
    assert page.locator("#board tbody tr").count() > first
    page.locator("#board th.c-utility button").click()
    figures = page.eval_on_selector_all("#board .c-utility[data-s]", "all => all.map(one => Number(one.dataset.s))")
    assert figures == sorted(figures, reverse=True)
    page.locator("#board tbody .opener").last.click()
    page.wait_for_selector(".more .facts")


def test_the_picture_names_its_marks_by_keyboard(visit: Visit) -> None:
    page = visit("board.html")
    page.wait_for_selector(".chart canvas")
    page.locator(".chart").focus()
    page.keyboard.press("ArrowRight")
    said = page.locator(".told-mark").inner_text()
    assert "utility" in said
    page.locator(".chart").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/cells/*.html")


def test_a_finger_learns_what_a_mark_is_before_it_follows_it(chromium: Any, site: Path) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 900}, has_touch=True)
    page = context.new_page()
    page.set_default_timeout(60_000)  # a load of ten
    page.goto((site / "board.html").as_uri())
    page.wait_for_selector(".chart canvas")
    page.locator(".chart").scroll_into_view_if_needed()
    box, told = page.locator(".chart .u-over").bounding_box(), page.locator(".told-mark a")
    spots = ((box["x"] + x, box["y"] + y) for y in range(4, 300, 12) for x in range(4, int(box["width"]), 12))
    for spot in spots:
        page.mouse.move(*spot)
        if told.count():
            break
    leads = told.get_attribute("href")
    page.locator(".chart").focus()
    page.keyboard.press("ArrowRight")
    assert told.get_attribute("href") != leads
    page.touchscreen.tap(*spot)
    page.wait_for_function("leads => document.querySelector('.told-mark a').getAttribute('href') === leads", arg=leads)
    assert page.url.endswith("board.html")
    page.touchscreen.tap(*spot)
    page.wait_for_url("**/cells/*.html")
    context.close()


def test_who_qualifies_and_why_others_do_not(visit: Visit) -> None:
    page = visit("choose.html?utility=0.7&figure=reid-auc&risk=0.8&claim=finite")
    page.wait_for_selector("#answer table")
    heads = page.locator("#answer h2").all_inner_texts()
    assert any("qualif" in head for head in heads)
    assert any("and why" in head for head in heads)
    why = page.locator("#answer table").last.locator("td.why").all_inner_texts()
    assert why
    assert all(why)
    page.get_by_label("Utility at least").fill("0.99")
    assert page.locator("#answer h2").first.inner_text() == "None qualifies"
    assert "utility=0.99" in page.url


def test_two_rows_stand_side_by_side_with_their_test(visit: Visit, site: Path) -> None:
    told = [json.loads(path.read_text()[len("veil.row(") : -3]) for path in sorted(site.glob("rows/method-*.js"))]
    a = next(one for one in told if one["tests"])
    b = next(iter(a["tests"]))
    page = visit(f"compare.html?rows={a['id']},{b},")
    page.wait_for_selector("#answer table")
    assert page.locator("#answer table.side thead th").count() == 2
    differences = page.locator("#answer section table tbody tr")
    assert differences.count() >= 2
    assert all("not significant" in text or "is better" in text for text in differences.all_inner_texts())
    page.goto(page.url.replace(b, "no-such-row"))
    page.wait_for_selector("#answer .notes")
    assert "no row of the name" in page.locator("#answer").inner_text()


def test_a_long_row_is_folded_on_a_phone_alone(visit: Visit, site: Path) -> None:
    name = next(site.glob("data/*-figures.html")).relative_to(site).as_posix()
    page = visit(name, width=390)
    row = page.locator("table.board tbody tr").first
    before = row.locator("td:visible").count()
    assert before == 4
    row.get_by_role("button", name="Show all").click()
    every = row.locator("td").count()
    assert row.locator("td:visible").count() == every > before
    row.get_by_role("button", name="Show 4").click()
    assert row.locator("td:visible").count() == before
    for wide in (visit(name), visit(name, width=390, script=False)):
        first = wide.locator("table.board tbody tr").first
        assert first.locator("td:visible").count() == every


def test_what_is_folded_is_printed(visit: Visit) -> None:
    page = visit("attacks/index.html")
    assert page.locator("details[open]").count() == 0
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
