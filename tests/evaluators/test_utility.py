"""Learning curves: how long Bob trains on a part, and what the record says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.bob.recipes import BobPlan, Recipe
from bench.cli import main
from bench.evaluators.utility import _longer
from bench.results.records import Record
from bench.results.results import Results


def steps(plan: BobPlan, rows: int) -> int:
    return plan.course(Recipe("resnet18", weight_decay=0.0), rows, "float32").total(rows)


@pytest.mark.parametrize("part", [2, 47, 64, 190, 750, 1500])
def test_a_part_is_trained_on_for_as_many_steps_as_the_whole(part: int) -> None:
    plan = BobPlan(epochs=10, batch=64)
    taken, whole = steps(_longer(plan, whole=1500, part=part), part), steps(plan, 1500)
    assert whole <= taken < whole + max(1, part // plan.batch)


def test_a_learning_curve_is_recorded_with_the_one_key_it_was_measured_under(tmp_path: Path) -> None:
    chosen = ["--method", "identity", "--dataset", "digits", "--preset", "smoke", "--limit", "60", "--jobs", "1"]
    asked = ["--attack", "none", "--metric", "learning-curve", "--no-site", "--results", str(tmp_path)]
    assert main(["run", *chosen, *asked]) == 0
    (record,) = (found for _, found in Results(tmp_path).records() if isinstance(found, Record))
    assert (record.kind, record.keys) == ("learning-curve", 1)
    assert "0.5 of the release" in record.scores["learning-curve"].parts
