"""Privacy figures are marked, and never ranked, if a promise was broken or not checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made.board_records import auc, plugin, record, score, utility, word

from bench.evaluators.honesty import Honesty
from bench.plugins import registry
from bench.results.results import Results
from leaderboard.board import FIGURE, KIND, Row, rows
from leaderboard.edition import Edition
from leaderboard.environment import ordered
from leaderboard.intake import Intake
from leaderboard.plots import Plane, points
from leaderboard.site import build


def attacked(method: str, figure: float = 0.6) -> list:
    return [
        record(method, scores={"reid-auc": auc(figure)}),
        record(method, "utility", {"utility-auc": utility(0.8)}, kind="utility"),
    ]


def row(*records) -> Row:
    (made,) = rows(records)
    return made


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (("pairs",), "undeclared links"),
        (("links",), "links withheld"),
        (("labels",), "rows hidden in labels"),
        (("replay", "pairs"), "undeclared links, does otherwise when its key is used again"),
    ],
)
def test_a_broken_promise_is_said_and_marks_figures_of_attacks_only(broken: tuple[str, ...], said: str) -> None:
    made = row(*attacked("a"), word("a", *broken))
    assert made.unrated == made.entries["reid-auc"].unrated == said
    assert made.attacks["contrastive"]["reid-auc"].unrated == said
    assert made.entries["utility-auc"].unrated == ""
    assert made.panel.verdict.startswith(f"not rated ({said}): ")


def test_a_kept_word_leaves_figures_as_they_are() -> None:
    made = row(*attacked("a"), word("a"))
    assert made.unrated == made.entries["reid-auc"].unrated == ""
    assert "not rated" not in made.panel.verdict


def test_a_word_that_nobody_looked_into_is_not_taken() -> None:
    assert row(*attacked("a")).unrated == "the check of its promises did not run"
    without = record("a", "honesty", {"undeclared-pairs": score(0.0)}, kind="honesty")
    assert row(*attacked("a"), without).unrated == "the check of its promises did not run"
    failed = record("a", "honesty", kind="honesty", status="timed-out", reason="slow", phase="score")
    assert row(*attacked("a"), failed).unrated == "the check of its promises timed out"


@pytest.mark.parametrize(("origin", "said"), [("veil-bench", ""), ("theirs", "attacks on it failed: leverage")])
def test_a_method_from_outside_on_which_attacks_fail_is_not_rated(origin: str, said: str) -> None:
    """It runs for them, and could have made them fail."""
    failed = record("a", "leverage", status="failed", reason="died", code="died", phase="attack")
    made = [*attacked("a"), failed, record("a", "moments", status="not-applicable", reason="no pairs"), word("a")]
    method = made[0].method.model_copy(update={"origin": origin})
    assert row(*(each.model_copy(update={"method": method, "isolation": "sandbox"}) for each in made)).unrated == said


@pytest.mark.parametrize(
    ("origin", "said"), [("veil-bench", ""), ("theirs", "it refused requests of attacks: leverage")]
)
def test_a_method_from_outside_that_refuses_releases_to_attacks_is_not_rated(origin: str, said: str) -> None:
    """No attack that failed to apply says anything for it."""
    refused = record("a", "leverage", status="not-applicable", reason="too few", code="refused", phase="attack")
    made = [*attacked("a"), refused, word("a")]
    method = made[0].method.model_copy(update={"origin": origin})
    assert row(*(each.model_copy(update={"method": method, "isolation": "sandbox"}) for each in made)).unrated == said


def test_a_method_that_releases_nothing_has_nothing_to_keep() -> None:
    nothing = record("a", "honesty", kind="honesty", status="not-applicable", reason="no rows", phase="release")
    assert row(nothing).unrated == ""
    assert row(*attacked("a"), nothing).unrated == "attacks found a release, but the check of its promises found none"


def test_reference_methods_need_no_word() -> None:
    reference = plugin("noise", {}).model_copy(update={"role": "keeps nothing"})
    made = record("noise", scores={"reid-auc": auc(0.5)}).model_copy(update={"method": reference})
    assert row(made).unrated == ""


def test_unrated_rows_come_after_all_rated_ones_and_are_not_drawn() -> None:
    records = [*attacked("cheat", 0.5), word("cheat", "pairs"), *attacked("honest", 0.9), word("honest")]
    edition = Edition.of(Intake(tuple(records), {}))
    assert [each.method for each in ordered(edition.rows, edition.named["reid-auc"])] == ["honest", "cheat"]
    drawn = points(edition.rows, Plane("reid-auc"))
    assert [point.row.plugin for point in drawn] == ["honest"]


def test_pages_mark_unrated_figures_and_do_not_sort_by_them(write: Callable[..., Results], tmp_path: Path) -> None:
    results = write(*attacked("cheat"), word("cheat", "pairs"))
    build(results, tmp_path / "site")
    (figures,) = (tmp_path / "site" / "data").glob("*-figures.html")
    page = figures.read_text(encoding="utf-8")
    place = page.index(">0.600<")
    cell = page[page.rindex("<td", 0, place) : page.index("</td>", place)]
    assert "not rated" in cell
    assert "undeclared links" in cell
    assert "data-sort" not in cell


def test_the_judge_of_promises_is_known_by_its_own_name() -> None:
    """The board does not import it to name it."""
    assert Honesty.name == KIND
    assert registry.load("metrics", FIGURE).name == FIGURE
