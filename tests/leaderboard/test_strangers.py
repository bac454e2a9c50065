"""What others handed in speaks for itself alone: it certifies, voids, ranks, describes and displaces nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made.board_records import auc, guesswork, record
from made.current_records import current
from made.whole_rows import HOLDING, VOID, controls, kept, keyed, whole

from bench.results.records import Record, proved
from bench.results.verdict import Judged, JudgedRow, Tier, Verdict, fingerprint
from bench.workbench.inputs import PROTOCOL
from leaderboard.board import Row
from leaderboard.edition import Edition
from leaderboard.intake import Intake, intake
from leaderboard.published import examined
from leaderboard.summary import attack_record, matrix

BY_AUTHOR = "certified by controls that its author alone measured"


def judging(tiers: dict[str, Tier], *records: Record) -> Verdict:
    """A verdict on records that were handed in together, by the name of their methods."""
    cells: dict[str, list[Record]] = {}
    for each in records:
        cells.setdefault(each.cell, []).append(each)
    beside = {cell: fingerprint(told) for cell, told in cells.items() if told[0].method.role}
    rows = {
        cell: JudgedRow(
            records={each.evaluator: Judged(digest=str(each.digest), tier=tiers[each.method.name], reason="")
                     for each in told},
            controls={} if cell in beside else beside, protocol=PROTOCOL, said=["pictures"],
        )
        for cell, told in cells.items()
    }  # fmt: skip
    return Verdict(bundle="0" * 64, rows=rows, protocol=PROTOCOL, verified_by="a test", created="2026")


def all_at(tier: Tier, records: Sequence[Record]) -> Verdict:
    return judging({each.method.name: tier for each in records}, *records)


def row(taken: Intake, method: str) -> Row:
    (found,) = (each for each in taken.rows if each.method == method)
    return found


@pytest.mark.parametrize("tier", [None, Tier.ARITHMETIC_CHECKED, Tier.RE_RUN])
@pytest.mark.parametrize("told", [HOLDING, VOID])
def test_made_up_controls_neither_certify_nor_void_a_row_of_the_board(
    tmp_path: Path, tier: Tier | None, told: dict[str, tuple[float, float]]
) -> None:
    honest = VOID if told is HOLDING else HOLDING
    own = kept(tmp_path / "own", *whole("dp-simple"), *controls(honest))
    theirs = controls(told, created="2099-01-01T00:00:00Z")
    verdicts = () if tier is None else (all_at(tier, theirs),)
    taken = intake(own, kept(tmp_path / "theirs", *theirs), verdicts=verdicts)
    (member,) = row(taken, "dp-simple").panel.members
    assert member.certified is (honest is HOLDING)
    assert not member.theirs


def test_made_up_controls_neither_certify_nor_void_the_row_of_another_stranger(tmp_path: Path) -> None:
    """Both hold the cells of the reference methods, which are taken from one of them: each row keeps its own."""
    own = kept(tmp_path / "own", *whole("dp-simple"))
    one, other = [*whole("a"), *controls(HOLDING)], [*whole("b"), *controls(VOID, created="2099-01-01T00:00:00Z")]
    sources = kept(tmp_path / "one", *one), kept(tmp_path / "other", *other)
    for verdicts in ((), (all_at(Tier.ARITHMETIC_CHECKED, one), all_at(Tier.ARITHMETIC_CHECKED, other))):
        taken = intake(own, *sources, verdicts=verdicts)
        assert [row(taken, name).panel.members[0].certified for name in ("a", "b")] == [True, False]


def test_a_certificate_of_the_authors_own_controls_says_so(tmp_path: Path) -> None:
    mine = [*whole("a"), *controls(HOLDING)]
    own, strange = kept(tmp_path / "own", *whole("dp-simple")), kept(tmp_path / "a", *mine)
    found = row(intake(own, strange, verdicts=(all_at(Tier.ARITHMETIC_CHECKED, mine),)), "a")
    assert found.panel.members[0].theirs
    assert found.standing.sentence.endswith(BY_AUTHOR)
    again = row(intake(own, strange, verdicts=(all_at(Tier.RE_RUN, mine),)), "a")
    assert (again.panel.members[0].certified, again.panel.members[0].theirs) == (True, False)
    project = kept(tmp_path / "own", *controls(HOLDING))
    assert BY_AUTHOR not in row(intake(project, strange), "a").standing.sentence


def test_a_certificate_rests_on_controls_that_were_checked_as_far_as_the_row(tmp_path: Path) -> None:
    mine = [*whole("a"), *controls(HOLDING)]
    told = judging({"a": Tier.RE_RUN, **dict.fromkeys(HOLDING, Tier.ARITHMETIC_CHECKED)}, *mine)
    taken = intake(kept(tmp_path / "own", *whole("dp-simple")), kept(tmp_path / "a", *mine), verdicts=(told,))
    found = row(taken, "a")
    assert taken.tier(found) is Tier.RE_RUN
    assert found.panel.members[0].standing == "controls not run"


def test_the_boards_own_controls_come_before_those_that_were_handed_in(tmp_path: Path) -> None:
    own = kept(tmp_path / "own", *controls(VOID))
    taken = intake(own, kept(tmp_path / "a", *whole("a"), *controls(HOLDING)))
    assert not row(taken, "a").panel.members[0].certified


def test_a_row_whose_controls_were_swapped_is_no_longer_the_one_that_was_judged(tmp_path: Path) -> None:
    mine, other = [*whole("a"), *controls(VOID)], [*whole("a"), *controls(HOLDING)]
    own, told = kept(tmp_path / "own", *whole("dp-simple")), (all_at(Tier.RE_RUN, mine),)
    for number, (records, tier) in enumerate([(mine, Tier.RE_RUN), (other, Tier.SELF_REPORTED),
                                              (mine[:-1], Tier.SELF_REPORTED)]):  # fmt: skip
        taken = intake(own, kept(tmp_path / str(number), *records), verdicts=told)
        assert taken.tier(row(taken, "a")) is tier


def test_what_nobody_else_measured_is_not_ranked_and_judges_no_method_of_the_board(tmp_path: Path) -> None:
    own = kept(tmp_path / "own", *whole("dp-simple"), *whole("dp-image", useful=0.7), *controls(HOLDING))
    lie = [each.model_copy(update={"cell": "synth-cxr/lie"}) for each in whole("dp-simple", 1.0, 1.0, 0.99)]
    edition = Edition.of(intake(own, kept(tmp_path / "a", *map(proved, lie))))
    analysed = next(one for one in edition.board if one.cell == "synth-cxr/lie")
    lie = next(one for one in edition.rows if one.id == analysed.id)
    assert (lie.verdict, lie.trusted, lie.unverified) == ("broken", False, ["all of it"])
    assert (lie.utility_rank, lie.privacy_rank, lie.tests) == (None, None, {})
    (places,) = (places for name, places in matrix(edition.lines).methods if name == "dp-simple")
    assert [place.worst.trusted for place in places if place] == [True]
    attack = "reidentification", "contrastive"
    assert attack_record(*attack, edition.attacks[attack][1]).broken == ()


def test_what_a_figure_is_called_is_the_boards_own_word(tmp_path: Path) -> None:
    own = kept(tmp_path / "own", *whole("dp-simple"))
    lying = whole("a", created="2099-01-01T00:00:00Z")[1]
    said = lying.metrics["utility-auc"].model_copy(update={"title": "Safest of all"})
    metrics = {**lying.metrics, "utility-auc": said}
    taken = intake(own, kept(tmp_path / "a", keyed(lying, metrics=metrics)))
    assert "Safest of all" not in {column.title for column in taken.columns}


@pytest.mark.parametrize("protocol", [PROTOCOL + 1, 999, 0, -1, True, "3", None])
def test_a_protocol_that_is_none_starts_no_board(tmp_path: Path, protocol: Any) -> None:
    fit, refused = examined(kept(tmp_path, current(inputs={"protocol": protocol})), current=False)
    assert not fit
    assert any("its protocol is none" in reason for _, reason in refused)


@pytest.mark.parametrize("created", ["2999-01-01T00:00:00+00:00", "tomorrow", "", "2026-01-01", "9"])
def test_a_record_of_the_future_is_refused(tmp_path: Path, created: str) -> None:
    fit, refused = examined(kept(tmp_path, current(created=created)), current=False)
    assert not fit
    assert any("has not come yet" in reason for _, reason in refused)


def test_figures_say_whether_they_count_and_what_does_not_goes_beyond(tmp_path: Path) -> None:
    """An attack that holds dents the row; another, which does not count, breaks it."""
    strong = record("a", "relational", {"reid-auc": auc(0.97), "guesswork": guesswork(1.2)})
    own = kept(tmp_path / "own", *whole("a", 0.6), keyed(strong), *controls(HOLDING))
    (one,) = (one for one in Edition.of(intake(own)).rows if one.plugin == "a")
    assert (one.figures["reid-auc"].value, one.figures["reid-auc"].certified) == (0.6, True)
    assert one.figures["reid-auc"].beyond == 0.97
    assert one.figures["utility-auc"].beyond is None
    bare = kept(tmp_path / "bare", *whole("a", 0.6), keyed(strong))
    (one,) = Edition.of(intake(bare)).rows
    assert (one.figures["reid-auc"].certified, one.figures["reid-auc"].beyond) == (False, None)
