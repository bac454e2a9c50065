from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from made.board_records import claim, record, utility

from bench.results.records import Record
from leaderboard.board import rows
from leaderboard.budget import budget_plot, curves


def point(method: str, epsilon: float | None, value: float, *, seed: int = 0, **fixed: str) -> Record:
    return record(
        method, "utility", {"utility-auc": utility(value)}, kind="utility", claim=claim(epsilon),
        parameters={"epsilon": epsilon, **fixed}, seed=seed,
    )  # fmt: skip


def test_a_curve_holds_one_method_with_all_but_its_budget_fixed_in_ascending_order() -> None:
    board = rows([
        point("cadp", 10.0, 0.8, variant="paper"), point("cadp", 2.0, 0.7, variant="paper"),
        point("cadp", 2.0, 0.6, variant="corrected"), point("cadp", 10.0, 0.65, variant="corrected"),
        point("lonely", 1.0, 0.6),
    ])  # fmt: skip
    found, _ = curves(board, "utility-auc")
    assert [(curve.label, curve.budgets) for curve in found] == [
        ("cadp variant=corrected", (2.0, 10.0)), ("cadp variant=paper", (2.0, 10.0)),
    ]  # fmt: skip
    assert [score.value for score in found[1].figures] == [0.7, 0.8]


def test_rows_without_a_finite_bound_have_no_place_on_the_axis() -> None:
    board = rows([point("dp-image", None, 0.8), point("cadp", 1.0, 0.7)])
    assert curves(board, "utility-auc")[0] == []
    assert budget_plot(board) is None


def test_bounds_for_single_pixels_have_no_place_among_those_for_images() -> None:
    pixel = claim(1.0).model_copy(update={"unit": "pixel"})
    found = [
        record("mosaic", "utility", {"utility-auc": utility(0.7)}, kind="utility", claim=pixel,
               parameters={"epsilon": epsilon})
        for epsilon in (1.0, 2.0)
    ]  # fmt: skip
    assert curves(rows(found), "utility-auc")[0] == []


def test_one_budget_measured_twice_has_two_points() -> None:
    found = [point("cadp", 1.0, value).model_copy(update={"cell": f"on device {value}"}) for value in (0.6, 0.7)]
    (curve,), _ = curves(rows(found), "utility-auc")
    assert curve.budgets == (1.0, 1.0)
    assert sorted(score.value for score in curve.figures) == [0.6, 0.7]


def test_curves_of_two_seeds_are_told_apart() -> None:
    found = [
        point("cadp", epsilon, 0.7, seed=seed).model_copy(update={"cell": f"{epsilon} {seed}"})
        for epsilon in (1.0, 2.0) for seed in (0, 1)
    ]  # fmt: skip
    assert [curve.label for curve in curves(rows(found), "utility-auc")[0]] == ["cadp seed 0", "cadp seed 1"]


@pytest.mark.parametrize("name", ["$\\frac{", "<script>alert(1)</script>--", "x" * 300, "_hidden"])
def test_any_method_name_gives_a_well_formed_picture_with_the_same_bytes(name: str) -> None:
    board = rows([point(name, 1.0, 0.6), point(name, 4.0, 0.7)])
    svg = budget_plot(board)
    assert svg is not None
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert svg == budget_plot(board)
