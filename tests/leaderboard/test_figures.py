from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import matplotlib
import pytest
from made.board_records import auc, guesswork, metrics, record, score, utility, word

from bench.results.records import Record
from leaderboard.board import rows
from leaderboard.figures import PLANES, alternative, plane, points


def pair(method: str, seed: int = 0, **parameters: float) -> list[Record]:
    more = {"parameters": parameters, "seed": seed}
    return [
        record(method, scores={"reid-auc": auc(0.7), "guesswork": guesswork(9)}, **more),
        record(method, "utility", {"utility-auc": utility(0.8)}, kind="utility", **more),
        word(method, **more),
    ]


def test_the_same_rows_give_the_same_bytes() -> None:
    board = rows([*pair("a"), *pair("b")])
    assert plane(board, PLANES[0], ["a", "b"], "light") == plane(board, PLANES[0], ["a", "b"], "light")


def test_light_and_dark_differ() -> None:
    board = rows(pair("a"))
    assert plane(board, PLANES[1], ["a"], "light") != plane(board, PLANES[1], ["a"], "dark")


@pytest.mark.parametrize("name", ["$\\frac{", "<script>alert(1)</script>--", "方法", "x" * 300, "a\nb"])
def test_any_method_name_gives_a_well_formed_picture(name: str) -> None:
    svg = plane(rows(pair(name)), PLANES[0], [name], "light")
    assert svg is not None
    ElementTree.fromstring(svg)
    assert "<script" not in svg


def test_axes_are_named_by_the_records_whatever_they_say() -> None:
    renamed = metrics("reid-auc")["reid-auc"].model_copy(update={"title": "$\\frac{ <script>\n方法"})
    board = rows([one.model_copy(update={"metrics": {**one.metrics, "reid-auc": renamed}}) for one in pair("a")])
    svg = plane(board, PLANES[0], ["a"], "light")
    assert svg is not None
    ElementTree.fromstring(svg)
    assert alternative(board, PLANES[0]).startswith(
        "Utility AUC against $\\frac{ <script> 方法, reversed axis: weakest"
    )


def test_rows_without_both_figures_are_not_drawn() -> None:
    assert plane(rows([record(scores={"reid-auc": auc(0.7)})]), PLANES[0], ["dp-simple"], "light") is None


def test_labels_name_what_tells_the_rows_of_a_method_apart() -> None:
    board = rows([*pair("a", scale=1.0, fixed=3), *pair("a", scale=2.0, fixed=3), *pair("b", scale=1.0)])
    assert [point.label for point in points(board, PLANES[0])] == ["a scale=1.0", "a scale=2.0", "b"]


def test_labels_leave_out_what_most_rows_of_the_method_have() -> None:
    more = [*pair("a", scale=1.0, width=2.0), *pair("a", scale=1.0, width=3.0), *pair("a", scale=4.0, width=5.0)]
    labels = [point.label for point in points(rows(more), PLANES[0])]
    assert labels == ["a width=2.0", "a width=3.0", "a scale=4.0 width=5.0"]


def test_reference_methods_are_left_out_of_the_picture_that_they_would_stretch() -> None:
    def made(method: str, role: str | None) -> list[Record]:
        far = score(50.0, better="higher")
        found = [
            record(method, "sets", {"nearest-neighbour-distance": far}, kind="sets"),
            record(method, "linear-probe", {"linear-probe-auc": utility(0.5)}, kind="linear-probe"),
        ]
        return [one.model_copy(update={"method": one.method.model_copy(update={"role": role})}) for one in found]

    board = rows([*made("noise", "keeps nothing"), *made("cvae", None)])
    assert [point.label for point in points(board, PLANES[3])] == ["cvae"]


def test_drawing_leaves_the_settings_of_matplotlib_alone() -> None:
    before = dict(matplotlib.rcParams)
    plane(rows(pair("a")), PLANES[0], ["a"], "dark")
    assert dict(matplotlib.rcParams) == before
