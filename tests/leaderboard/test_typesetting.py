"""Tables for papers: figures as on the board, text of others escaped, missing figures explained."""

from __future__ import annotations

import csv
import io

import pytest
from made.board_records import auc, guesswork, record, utility

from leaderboard.board import rows
from leaderboard.entries import interval, number
from leaderboard.typesetting import TIDY, Form, Sheet, row_label, typeset

FORMS: tuple[Form, ...] = ("markdown", "latex", "typst")
WHY = r"\input{x} #eval(1) | *of no use*"


def sheet(method: str = "dp-simple") -> Sheet:
    records = [
        record(method, "contrastive", {"reid-auc": auc(0.9), "guesswork": guesswork(3.0)}, cell="one"),
        record(method, "relational", {"reid-auc": auc(0.7), "guesswork": guesswork(40.0)}, cell="one"),
        record(method, "utility", {"utility-auc": utility(0.75)}, kind="utility", cell="one"),
        record("identity", "utility", status="failed", phase="fit", reason=WHY, kind="utility", cell="two"),
    ]
    board = rows(records)
    columns = [board[0].entries[name].column for name in ("utility-auc", "reid-auc", "guesswork")]
    return Sheet("a set", board, columns)


@pytest.mark.parametrize("form", FORMS)
def test_figures_stand_as_on_the_board(form: Form) -> None:
    text, entry = typeset([sheet()], form), sheet().rows[0].entries["utility-auc"]
    assert entry.score is not None
    assert entry.text in text
    ends = interval(entry.score.low, entry.score.high, entry.column.digits).split(" – ")
    assert all(end in text for end in ends)


@pytest.mark.parametrize(
    ("form", "escaped"),
    [
        ("markdown", r"\\input\{x\} \#eval(1) \| \*of no use\*"),
        ("latex", r"\textbackslash{}input\textbraceleft{}x\textbraceright{} \#eval(1) \textbar{} {*}of no use{*}"),
        ("typst", r"\\input\{x\} \#eval(1) \| \*of no use\*"),
    ],
)
def test_a_missing_figure_says_why_in_a_footnote_without_commands_of_its_own(form: Form, escaped: str) -> None:
    text = typeset([sheet()], form)
    assert escaped in text
    assert WHY not in text


@pytest.mark.parametrize("form", FORMS)
def test_an_attack_without_controls_has_a_dagger_that_is_explained(form: Form) -> None:
    text = typeset([sheet()], form)
    assert (r"$\dagger$" if form == "latex" else "†") in text
    assert "supports no claim of privacy" in text


def test_the_tidy_table_has_the_figure_of_the_strongest_attack() -> None:
    lines = list(csv.DictReader(io.StringIO(typeset([sheet()], "csv"))))
    assert tuple(lines[0]) == TIDY
    found = next(line for line in lines if line["row"] == "dp-simple" and line["metric"] == "reid-auc")
    assert (float(found["value"]), found["attack"], found["certified"], found["keys"]) == (
        0.9,
        "contrastive",
        "no",
        "5",
    )
    failed = next(line for line in lines if line["row"] == "identity" and line["metric"] == "utility-auc")
    assert (failed["value"], failed["status"]) == ("", "failed")
    assert WHY in failed["reason"]


def test_a_formula_of_a_stranger_is_no_formula_in_a_spreadsheet() -> None:
    lines = list(csv.DictReader(io.StringIO(typeset([sheet("=1+1")], "csv"))))
    assert {line["method"] for line in lines} == {"'=1+1", "identity"}


def test_rows_of_one_method_are_told_apart_by_what_differs() -> None:
    made = [
        record("stranger", scores={"guesswork": guesswork(3.0)}, parameters={"scale": scale, "clip": 1.0}, cell=name)
        for name, scale in (("one", 1.0), ("two", 2.0))
    ]
    board = rows(made)
    assert [row_label(row, board) for row in board] == ["stranger[scale=1.0]", "stranger[scale=2.0]"]
    assert number(3.0, None) in typeset([Sheet("a set", board, [board[0].entries["guesswork"].column])], "typst")


def test_a_row_is_not_told_apart_by_a_text_that_it_leaves_empty() -> None:
    made = [
        record("stranger", scores={"guesswork": guesswork(3.0)}, parameters={"weights_sha256": of}, cell=name)
        for name, of in (("one", ""), ("two", "119da2cefba2"))
    ]
    board = rows(made)
    assert sorted(row_label(row, board) for row in board) == ["stranger", "stranger[weights_sha256=119da2cefba2]"]


def test_rows_of_the_same_parameters_say_by_which_choice_they_differ() -> None:
    made = [
        record("stranger", scores={"guesswork": guesswork(3.0)}, eve=eve, cell=eve)
        for eve in ("same-image", "other-study")
    ]
    board = rows(made)
    assert sorted(row_label(row, board) for row in board) == [
        "stranger (eve other-study)", "stranger (eve same-image)",
    ]  # fmt: skip
    lines = list(
        csv.DictReader(io.StringIO(typeset([Sheet("a set", board, [board[0].entries["guesswork"].column])], "csv")))
    )
    assert {line["row"] for line in lines} == {"stranger (eve other-study)", "stranger (eve same-image)"}
