from __future__ import annotations

import pytest
from made.board_records import auc, guesswork, metrics, plugin, record, score, utility

from leaderboard.entries import against_null, columns, entry, interval, number

BY_NAME = {column.name: column for column in columns([record(), record(kind="utility")])}


def test_the_weakest_attack_is_the_lowest_guesswork_and_the_highest_auc() -> None:
    records = [
        record(evaluator="a", scores={"guesswork": guesswork(50), "reid-auc": auc(0.9)}),
        record(evaluator="b", scores={"guesswork": guesswork(2), "reid-auc": auc(0.6)}),
    ]
    assert entry(records, BY_NAME["guesswork"]).by == "b"
    assert entry(records, BY_NAME["reid-auc"]).by == "a"


def test_random_scores_never_stand_for_a_method_while_an_attack_has_a_figure() -> None:
    chance = record(evaluator="chance", scores={"guesswork": guesswork(3)})
    real = record(evaluator="contrastive", scores={"guesswork": guesswork(90)})
    assert entry([chance, real], BY_NAME["guesswork"]).by == "contrastive"
    assert entry([chance], BY_NAME["guesswork"]).by == "chance"


def test_a_figure_is_an_attack_s_by_its_record_whatever_evaluator_gave_it() -> None:
    mine = {"kind": "mine", "metrics": metrics("reid-auc"), "scores": {"reid-auc": auc(0.6)}}
    assert entry([record(attack=plugin("a", {}), **mine)], BY_NAME["reid-auc"]).attacked
    assert not entry([record(**mine)], BY_NAME["reid-auc"]).attacked


def test_an_attack_that_failed_leaves_a_visible_gap_beside_the_figure() -> None:
    broken = record(evaluator="b", status="timed-out", phase="attack", reason="60 s")
    found = entry([record(evaluator="a", scores={"reid-auc": auc(0.6)}), broken], BY_NAME["reid-auc"])
    assert found.status == "ok"
    assert found.incomplete
    assert [(gap.evaluator, gap.reason) for gap in found.gaps] == [("b", "60 s (in attack)")]


def test_without_a_figure_the_gravest_status_and_its_reason_show() -> None:
    records = [
        record(evaluator="a", status="not-applicable", reason="no links"),
        record(evaluator="b", status="failed", reason="out of memory"),
    ]
    found = entry(records, BY_NAME["guesswork"])
    assert (found.status, found.text, found.reason) == ("failed", "failed", "b: out of memory")


def test_a_metric_without_a_figure_in_a_good_record_is_not_applicable_with_its_reason() -> None:
    found = entry([record(not_applicable={"patient-guesswork": "no subjects"})], BY_NAME["patient-guesswork"])
    assert (found.text, found.reason) == ("not applicable", "contrastive: no subjects")


def test_what_nobody_ran_is_not_run() -> None:
    assert entry([record()], BY_NAME["utility-auc"]).text == "not run"


@pytest.mark.parametrize(("value", "place"), [(0.5, "inside"), (0.52, "inside"), (0.53, "worse"), (0.47, "better")])
def test_a_figure_inside_the_interval_of_chance_is_told_from_one_outside(value: float, place: str) -> None:
    assert against_null(auc(value)) == place


def test_direction_turns_the_sides_of_chance_round() -> None:
    assert against_null(guesswork(2)) == "worse"
    assert against_null(utility(0.8)) == "better"
    assert against_null(score(1.0)) is None


def test_text_interval_and_chance_are_ready_to_print() -> None:
    found = entry([record(scores={"reid-auc": auc(0.6)})], BY_NAME["reid-auc"])
    assert (found.text, found.interval) == ("0.600", "0.580 – 0.620")
    assert interval(None, 1.0, 2) == "no interval"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1.00"),
        (99.95, "100.0"),
        (999.6, "1,000"),
        (123456, "123,456"),
        (2e6, "2.00 × 10⁶"),
        (-3, "−3.00"),
    ],
)
def test_figures_of_any_size_get_about_three_digits(value: float, text: str) -> None:
    assert number(value, None) == text
