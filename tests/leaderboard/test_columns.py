from __future__ import annotations

from made.board_records import record, score

from leaderboard.columns import COLUMNS, columns


def test_an_unknown_metric_gets_a_column_with_the_direction_of_its_record() -> None:
    found = columns([record(scores={"new-auc": score(0.6, better="lower")})])
    new = next(column for column in found if column.name == "new-auc")
    assert (new.title, new.kind, new.arrow) == ("New auc", "attack", "↓")
    assert len(found) == len(COLUMNS) + 1


def test_the_record_decides_the_direction() -> None:
    found = columns([record(kind="sets", scores={"max-dispersion": score(1.0, better="lower")})])
    assert next(column for column in found if column.name == "max-dispersion").arrow == "↓"


def test_columns_of_one_group_stand_side_by_side() -> None:
    groups = [column.group for column in columns([record(scores={"zzz": score(1.0)})])]
    assert len(set(groups)) == sum(a != b for a, b in zip(groups, [None, *groups], strict=False))


def test_every_usual_column_says_what_it_means() -> None:
    assert all(column.meaning.endswith(".") for column in COLUMNS)
