from __future__ import annotations

from made.board_records import metric, metrics, record

from bench.contract.metric import GROUPS
from leaderboard.entries import columns


def test_a_metric_from_outside_is_shown_as_its_record_says() -> None:
    mine = metric("My figure", meaning="What I measure.", digits=1, chance="little", better="higher")
    (found,) = columns([record(metrics={"mine": mine})])
    assert (found.name, found.title, found.meaning, found.digits) == ("mine", "My figure", "What I measure.", 1)
    assert (found.chance, found.arrow) == ("little", "↑")


def test_only_metrics_that_a_record_was_asked_for_have_a_column() -> None:
    assert columns([]) == ()
    failed = record(status="failed", reason="no memory", metrics=metrics("guesswork"))
    assert [column.title for column in columns([failed])] == ["Guesswork"]


def test_of_records_that_disagree_the_newest_counts() -> None:
    earlier = record(metrics={"mine": metric("Old", better="lower")}, created="2025-01-02T03:04:05+00:00")
    later = record(metrics={"mine": metric("New", better="higher")}, created="2025-01-02T03:04:06+00:00")
    for records in ([earlier, later], [later, earlier]):
        (found,) = columns(records)
        assert (found.title, found.arrow) == ("New", "↑")


def test_records_of_one_second_that_disagree_give_the_same_column_in_any_order() -> None:
    both = [record(evaluator=name, metrics={"mine": metric(name)}) for name in "ab"]
    assert columns(both) == columns(reversed(both))


def test_groups_stand_in_the_order_of_the_board_and_unknown_ones_after_them_by_name() -> None:
    named = {name: metric(name, group=name) for name in ("Zeal", *reversed(GROUPS), "Ardour")}
    assert [column.group for column in columns([record(metrics=named)])] == [*GROUPS, "Ardour", "Zeal"]


def test_within_a_group_metrics_stand_by_order_then_by_name() -> None:
    named = {"b": metric("b", order=2), "c": metric("c", order=1), "a": metric("a", order=2)}
    assert [column.name for column in columns([record(metrics=named)])] == ["c", "a", "b"]
