"""A row whose figure an attack gave that does not count, or surpassed, does not qualify without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made import board_records
from made.board_records import auc, claim, dataset, guesswork, metrics, plugin, record, score, utility, word
from made.whole_rows import HOLDING, controls, kept, keyed, whole

from bench.results.records import proved
from leaderboard.entries import number
from leaderboard.site import build


def answer(chromium: Any, site: Path, asked: str) -> dict[str, str]:
    """Why each method qualifies or does not."""
    page = chromium.new_page()
    page.set_default_timeout(60_000)  # a load of ten
    page.goto(f"{(site / 'choose.html').as_uri()}?{asked}")
    page.wait_for_selector("#answer table")
    told = {row.locator("th").inner_text().split()[0]: row.locator("td.why").inner_text()
            for row in page.locator("#answer tbody tr").all()}  # fmt: skip
    page.close()
    return told


@pytest.mark.parametrize(
    ("certified", "said"),
    [
        (True, "an attack that is not certified puts ReID AUC at 0.970"),
        (False, "no certified attack gave its figure for ReID AUC: it supports no claim"),
    ],
)
def test_what_does_not_count_is_said(chromium: Any, tmp_path: Path, certified: bool, said: str) -> None:
    strong = record("a", "relational", {"reid-auc": auc(0.97), "guesswork": guesswork(1.2)})
    results = kept(tmp_path / "r", *whole("a", 0.6), keyed(strong), *(controls(HOLDING) if certified else ()))
    site = build(results, tmp_path / "site").parent
    assert said in answer(chromium, site, "figure=reid-auc&risk=0.7")["a"]


def heads(chromium: Any, site: Path, asked: str) -> list[tuple[str, list[str]]]:
    """The headings of the answer, each with the methods below it."""
    page = chromium.new_page()
    page.set_default_timeout(60_000)  # a load of ten
    page.goto(f"{(site / 'choose.html').as_uri()}{asked}")
    page.wait_for_selector("#answer table")
    told = page.evaluate(
        "Array.from(document.querySelectorAll('#answer h2'), head => [head.textContent, head.nextElementSibling?."
        "querySelector('tbody') ? Array.from(head.nextElementSibling.querySelectorAll('th[scope=row] a'), a => "
        "a.textContent) : []])"
    )
    page.close()
    return [(head, methods) for head, methods in told]


def test_a_broken_row_never_qualifies_and_one_without_a_bound_is_doubtful(chromium: Any, tmp_path: Path) -> None:
    results = kept(tmp_path / "r", *whole("a", 0.6, 1.0), *whole("b", 0.6), *controls(HOLDING))
    site = build(results, tmp_path / "site").parent
    assert heads(chromium, site, "?figure=reid-auc&risk=0.8") == [
        ("None qualifies for sure", []),
        ("1 row qualifies by the figure alone, with doubts", ["b"]),
        ("What comes nearest, and why it fails", ["a"]),
    ]
    found = heads(chromium, site, "?kind=")
    assert [methods for head, methods in found if "No requirement" in head] == [["b"]]
    assert ("1 does not, and why", ["a"]) in found


def test_the_page_opens_on_what_the_front_page_asks_for_and_says_none_where_none_qualifies(
    chromium: Any, tmp_path: Path
) -> None:
    results = kept(tmp_path / "r", *whole("a", 0.9, 1.0), *whole("b", 0.7), *controls(HOLDING))
    site = build(results, tmp_path / "site").parent
    for asked in ("", "?set=none", "?preset=none"):
        assert heads(chromium, site, asked)[:2] == [
            ("None qualifies", []), ("What comes nearest, and why it fails", ["b", "a"]),
        ]  # fmt: skip
    assert answer(chromium, site, "")["b"] == "ReID AUC is 0.700, above 0.600"


def test_a_claim_of_pixels_is_no_claim_of_an_image_and_a_broken_row_fails_any_wish(
    chromium: Any, tmp_path: Path
) -> None:
    claims = {"a": claim(0.5), "b": claim(0.5).model_copy(update={"unit": "pixel", "units": 16})}
    made = [keyed(record(name, "audit", kind="audit", claim=told)) for name, told in claims.items()]
    results = kept(tmp_path / "r", *whole("a", 0.6, 1.0), *whole("b", 0.6, 1.0), *made, *controls(HOLDING))
    site = build(results, tmp_path / "site").parent
    assert answer(chromium, site, "epsilon=1") == {
        "a": "its verdict is: broken",
        "b": "its verdict is: broken; its ε is per 16 pixels, not for a whole image",
    }


def test_a_release_without_rows_of_images_stands_by_its_members(chromium: Any, tmp_path: Path) -> None:
    """The front page names it among the nearest, so that this page must."""
    told = record("gen", "membership-dcr", {"membership-auc": auc(0.7)}, kind="membership", attack=plugin("dcr", {}))
    idle = record("gen", status="not-applicable", reason="no links", metrics=metrics("reid-auc", "guesswork"))
    useful = record("gen", "utility", {"utility-auc": utility(0.8)}, kind="utility")
    made = [keyed(one) for one in (told, idle, useful, word("gen"))]
    site = build(kept(tmp_path / "r", *whole("a", 0.9, 1.0), *made, *controls(HOLDING)), tmp_path / "site").parent
    said = answer(chromium, site, "figure=reid-auc&risk=0.6")["gen"]
    assert said == "no certified attack gave its figure for Membership AUC: it supports no claim"
    assert "no figure for" in answer(chromium, site, "figure=guesswork&risk=50")["gen"]


def test_what_few_keys_cannot_show_of_single_people_is_said(chromium: Any, tmp_path: Path) -> None:
    risk = record("a", "person", {"person-risk": score(0.4, 0.0, 0.86)}, kind="reidentification")
    site = build(kept(tmp_path / "r", *whole("a", 0.6), keyed(risk), *controls(HOLDING)), tmp_path / "site").parent
    page = chromium.new_page()
    page.set_default_timeout(60_000)  # a load of ten
    page.goto(f"{(site / 'choose.html').as_uri()}?figure=person-risk&risk=0.5")
    page.wait_for_selector("#answer table")
    told = page.locator("#answer p").all_inner_texts()
    page.goto(f"{(site / 'choose.html').as_uri()}?figure=person-risk&risk=0.9")
    page.wait_for_selector("#answer table")
    enough = page.locator("#answer p").all_inner_texts()
    page.close()
    assert any("No interval of this figure ends below 0.860 on these data: more keys" in one for one in told), told
    assert not any("No interval" in one for one in enough), enough


@pytest.mark.parametrize(
    "asked",
    ["utility=abc", "risk=1e999", "epsilon=%20", "kind=none", "claim=none", "figure=none"],
)
def test_what_nobody_could_ask_for_asks_for_nothing(chromium: Any, tmp_path: Path, asked: str) -> None:
    """A wish of the address that no control shows would keep rows out without a word."""
    results = kept(tmp_path / "r", *whole("a", 0.6), *controls(HOLDING))
    site = build(results, tmp_path / "site").parent
    assert answer(chromium, site, asked)["a"] == "no requirement"


def test_a_filter_that_fits_no_row_hides_none(chromium: Any, tmp_path: Path) -> None:
    site = build(kept(tmp_path / "r", *whole("a", 0.6), *controls(HOLDING)), tmp_path / "site").parent
    page = chromium.new_page()
    page.set_default_timeout(60_000)  # a load of ten
    page.goto(f"{(site / 'board.html').as_uri()}?tier=none&set=none&sort=none&hide=none&open=none")
    count = page.locator(".controls .count").inner_text()
    page.close()
    assert " of " not in count, count


def test_utility_is_the_figure_that_the_board_shows(chromium: Any, tmp_path: Path) -> None:
    told = record("a", "transfer", {"transfer-accuracy": utility(0.9)}, kind="transfer")
    site = build(kept(tmp_path / "r", keyed(told)), tmp_path / "site").parent
    assert answer(chromium, site, "utility=0.95")["a"] == "utility is 0.900, below 0.950"


def test_scripts_print_figures_as_pages_do(chromium: Any, tmp_path: Path) -> None:
    site = build(kept(tmp_path / "r", *whole("a", 0.6), *controls(HOLDING)), tmp_path / "site").parent
    sizes = [5e-5, 1.234e-4, 0.0051, 0.5, 0.98147, 1.0, 9.996, 12.0, 155.4, 8411.2, 1.234e9, 1.7e308]
    asked = [(sign * size, digits) for size in sizes for sign in (1, -1) for digits in (None, 2, 3, 4)]
    asked += [(0.0, None), (0.0, 3)]
    page = chromium.new_page()
    page.goto((site / "choose.html").as_uri())
    told = page.evaluate("some => some.map(([value, digits]) => veil.number(value, digits))", asked)
    assert page.evaluate("veil.digits('utility-auc') === 3 && veil.digits('guesswork') === null")
    page.close()
    assert told == [number(value, digits) for value, digits in asked]


def test_the_first_data_are_those_that_lead_the_board(chromium: Any, tmp_path: Path) -> None:
    """Not those to which most rows do not apply, though they come first and are as many."""
    idle = record("z", status="not-applicable", reason="no images", dataset=dataset("aaa"))
    more = [each.model_copy(update={"cell": f"aaa/z-{seed}", "seed": seed}) for seed, each in enumerate([idle] * 3)]
    site = build(
        kept(tmp_path / "r", *whole("a", 0.6), *(proved(board_records.keyed(each)) for each in more)), tmp_path / "site"
    ).parent
    assert list(answer(chromium, site, "")) == ["a"]
