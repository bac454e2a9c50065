"""What a classifier of public data alone gives stands beside utility, and what may be looked up is marked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from made.board_records import plugin, record, utility
from made.whole_rows import HOLDING, controls, kept, keyed, whole

from bench.plugins import registry
from bench.results.records import Record
from bench.results.verdict import Judged, JudgedRow, Tier, Verdict
from bench.workbench.inputs import PROTOCOL
from leaderboard.board import Row, rows
from leaderboard.intake import intake
from leaderboard.site import files

ROLE = "sees public rows only"


def public_model(value: float = 0.79) -> Record:
    method = plugin("public-model", {}).model_copy(update={"role": ROLE})
    return keyed(record("public-model", "utility", {"utility-auc": utility(value)}, kind="utility"), method=method)


def outside(name: str = "theirs", data: str = "synth-cxr") -> Record:
    method = plugin(name, {}).model_copy(update={"origin": "their-package"})
    made = record(name, "utility", {"utility-auc": utility(0.9)}, kind="utility")
    return keyed(made, method=method, choice={**made.choice, "dataset": data})


def row_of(found: list[Row], method: str) -> Row:
    (one,) = (row for row in found if row.method == method)
    return one


def test_a_row_knows_what_public_data_alone_give_on_the_same_data() -> None:
    mine = record("mosaic", "utility", {"utility-auc": utility(0.8)}, kind="utility")
    later = record("mosaic", "utility", {"utility-auc": utility(0.8)}, kind="utility", seed=1)
    found = rows([mine, later, public_model()])
    known = {row.seed: row.public_model for row in found if row.method == "mosaic"}
    assert known[0] is not None
    assert known[0].value == 0.79
    assert known[1] is None  # other data


def test_only_other_authors_methods_may_look_up_and_only_what_others_can_have() -> None:
    ours = record("mosaic", "utility", {"utility-auc": utility(0.8)}, kind="utility")
    found = rows([ours, outside(), outside("private", "folder"), outside("unknown", "no-such-set")])
    assert row_of(found, "mosaic").looked_up == ""
    assert "look test images up" in row_of(found, "theirs").looked_up
    assert "look test images up" in row_of(found, "unknown").looked_up
    assert row_of(found, "private").looked_up == ""


@pytest.mark.parametrize(
    ("tier", "draw", "known"),
    [
        (Tier.SELF_REPORTED, None, True), (Tier.ARITHMETIC_CHECKED, 1, True), (Tier.RE_RUN, None, True),
        (Tier.RE_RUN, 1, False), (Tier.SEALED, None, False),
    ],
)  # fmt: skip
def test_drawn_people_may_be_looked_up_by_an_author_who_had_their_secret(
    tmp_path: Path, tier: Tier, draw: int | None, known: bool
) -> None:
    row = outside("theirs", "synth-cxr[seed=secret]")
    own, theirs = kept(tmp_path / "own", public_model()), kept(tmp_path / "theirs", row)
    (one,) = (record for _, record in theirs.records() if isinstance(record, Record))
    judged = JudgedRow(
        records={one.evaluator: Judged(digest=str(one.digest), tier=tier, reason="")}, controls={}, protocol=PROTOCOL,
        said=[], draw=draw,
    )  # fmt: skip
    verdict = Verdict(bundle="0" * 64, rows={one.cell: judged}, protocol=PROTOCOL, verified_by="a test", created="2026")
    (shown,) = (each for each in intake(own, theirs, verdicts=(verdict,)).rows if each.method == "theirs")
    assert ("had the secret that draws these people" in shown.looked_up) is known
    assert row_of(rows([row]), "theirs").looked_up == ""  # the board's own people, after the code was handed in


def test_the_board_and_the_page_of_a_row_show_both(tmp_path: Path) -> None:
    pages = files(intake(kept(tmp_path, *controls(HOLDING), *whole("blur", useful=0.7), public_model(), outside())))
    board = re.sub(r"\s+", " ", str(pages["board.html"].make()))
    assert "public model 0.790" in board
    assert board.count("can be looked up") == 1


def test_every_data_set_but_the_users_own_can_be_had_by_others() -> None:
    kept = {name for name in registry.own("datasets") if not registry.load("datasets", name).obtainable}  # type: ignore[attr-defined]
    assert kept == {"folder"}
