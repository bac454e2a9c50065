from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.cli import main
from bench.data.sets.sklearn_sets import MEASUREMENTS
from bench.results.records import Record
from bench.results.results import Results
from bench.runs.plan import evaluators

METRICS = ("marginal-distance", "correlation-distance", "column-r2")


def tables(results: Path, dataset: str, *methods: str) -> dict[str, Record]:
    """What a run of the three metrics gave, by method."""
    arguments = ["run", "--dataset", dataset, "--preset", "smoke", "--no-site", "--results", str(results)]
    arguments += [part for method in methods for part in ("--method", method)]
    assert main([*arguments, *(part for metric in METRICS for part in ("--metric", metric))]) == 0
    return {found.method.name: found for _, found in Results(results).records() if isinstance(found, Record)}


def test_a_table_has_its_three_figures_with_its_own_columns(tmp_path: Path) -> None:
    found = tables(tmp_path, "diabetes:column", "identity", "dp-simple[scale=0.001]")
    assert {record.status for record in found.values()} == {"ok"}
    same, other = (found[name].scores for name in ("identity", "dp-simple"))
    assert same["marginal-distance"].value == same["correlation-distance"].value == 0
    r2 = same["column-r2"]
    assert set(r2.parts) == {
        *MEASUREMENTS, "progression", "trained on the original", "after matching mean and deviation",
    }  # fmt: skip
    assert math.isclose(r2.value, r2.parts["trained on the original"].value, rel_tol=1e-9)
    # The six serum values follow from one another, progression only in part from the rest.
    assert r2.parts["s1"].value > r2.parts["progression"].value > 0.2
    # Standardised rows under hardly any noise are all there, only not in the table's units.
    matched = other["marginal-distance"].parts["after matching mean and deviation"]
    assert other["marginal-distance"].value > 0.5 > 0.1 > matched.parts["age"].value
    assert other["correlation-distance"].value < 0.01


def test_images_have_no_columns_and_the_record_says_so(tmp_path: Path) -> None:
    record = tables(tmp_path, "digits", "identity")["identity"]
    assert (record.kind, record.status) == ("tables", "not-applicable")
    assert "digits holds images" in (record.reason or "")


@pytest.mark.parametrize("metric", METRICS)
def test_each_metric_is_taken_by_the_tables_evaluator(metric: str) -> None:
    assert [found.kind for found in evaluators((), (metric,))] == ["tables"]
