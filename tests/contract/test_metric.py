from __future__ import annotations

import pytest

from bench.contract.metric import GROUPS
from bench.plugins import registry
from bench.types import Column, column_of

OURS = {name: column_of(registry.load("metrics", name)) for name in registry.entries("metrics")}


def test_every_metric_of_this_project_stands_in_a_group_of_the_board() -> None:
    assert {column.group for column in OURS.values()} == set(GROUPS)


def test_no_two_metrics_have_one_title_or_one_place() -> None:
    assert len({column.title for column in OURS.values()}) == len(OURS)
    assert len({(column.group, column.order) for column in OURS.values()}) == len(OURS)


def test_metrics_from_outside_stand_behind_those_of_this_project_unless_they_say_otherwise() -> None:
    assert max(column.order for column in OURS.values()) < Column("Mine", "A figure.", "Utility").order


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"title": " "}, "title must not be empty"),
        ({"group": ""}, "group must not be empty"),
        ({"meaning": "hits"}, "'Hits' needs a meaning: a sentence that ends with a full stop, got 'hits'"),
        ({"chance": "one in ten."}, "no full stop: 'one in ten.'"),
        ({"digits": -1}, "digits must be 0 to 9, or None, got -1"),
    ],
)
def test_a_column_that_would_leave_a_page_incomplete_is_refused(change: dict[str, str | int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Column(**({"title": "Hits", "meaning": "The share of hits.", "group": "Utility"} | change))  # type: ignore[arg-type]
