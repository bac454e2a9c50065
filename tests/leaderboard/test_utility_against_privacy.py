from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from made.board_records import auc, guesswork, metrics, record, score, utility, word

from bench.results.records import Record
from leaderboard.board import rows
from leaderboard.intake import Tier
from leaderboard.lines import Line, lines, sections
from leaderboard.scatter import PLANES, Plane, axis, front, points, scatter
from leaderboard.standing import Standing


def pair(method: str, seed: int = 0, **parameters: float) -> list[Record]:
    more = {"parameters": parameters, "seed": seed}
    return [
        record(method, scores={"reid-auc": auc(0.7), "guesswork": guesswork(9)}, **more),
        record(method, "utility", {"utility-auc": utility(0.8)}, kind="utility", **more),
        word(method, **more),
    ]


def drawn(records: list[Record]) -> list[Line]:
    return lines(sections(rows(records)), lambda row: Tier.SELF_REPORTED)


def picture(records: list[Record], metric: str = "reid-auc") -> str:
    svg = scatter(drawn(records), Plane(metric), "../")
    assert svg is not None
    ElementTree.fromstring(svg)
    return svg


def test_the_same_rows_give_the_same_bytes() -> None:
    assert picture([*pair("a"), *pair("b")]) == picture([*pair("a"), *pair("b")])


def test_marks_lead_to_their_rows_and_say_what_they_are() -> None:
    (line,) = drawn(pair("a"))
    svg = picture(pair("a"))
    assert f'href="../cells/{line.id}.html"' in svg
    assert "<title>a: not certified; 0.800 (0.770 – 0.830) against 0.700" in svg


def test_better_stands_to_the_right_whichever_way_a_figure_runs() -> None:
    better, worse = axis([auc(0.5), auc(0.9)], 0, 100, log=False), axis([guesswork(1), guesswork(90)], 0, 100, log=True)
    assert better.at(0.5) > better.at(0.9)
    assert worse.at(90) > worse.at(1)


def test_the_front_holds_what_nothing_beats() -> None:
    def row(name: str, leak: float, use: float) -> list[Record]:
        return [record(name, scores={"reid-auc": auc(leak)}), word(name),
                record(name, "utility", {"utility-auc": utility(use)}, kind="utility")]  # fmt: skip

    made = drawn([*row("a", 0.9, 0.9), *row("b", 0.6, 0.7), *row("c", 0.7, 0.6)])
    found = points(made, Plane("reid-auc"))
    assert [point.line.row.method for point in front([replace(one, certified=True) for one in found])] == ["a", "b"]
    assert {line.standing.word for line in made} == {"not certified"}
    assert front(found) == []  # their figures support no claim
    told = [replace(line, standing=Standing("members told", "")) for line in made]  # by attacks of the other panel
    assert front(points(told, Plane("reid-auc"))) == []


@pytest.mark.parametrize("name", ["$\\frac{", "<script>alert(1)</script>--", "方法", "x" * 300, "a\nb", '"&amp;'])
def test_any_method_name_gives_a_well_formed_picture(name: str) -> None:
    assert "<script" not in picture(pair(name))


def test_axes_are_named_by_the_records_whatever_they_say() -> None:
    renamed = metrics("reid-auc")["reid-auc"].model_copy(update={"title": "<script>\n方法"})
    made = [one.model_copy(update={"metrics": {**one.metrics, "reid-auc": renamed}}) for one in pair("a")]
    assert "against &lt;script&gt;" in picture(made)


def test_rows_without_both_figures_are_not_drawn() -> None:
    assert scatter(drawn([record(scores={"reid-auc": auc(0.7)})]), Plane("reid-auc"), "") is None


def test_labels_name_what_tells_the_rows_of_a_method_apart() -> None:
    board = drawn([*pair("a", scale=1.0, fixed=3), *pair("a", scale=2.0, fixed=3), *pair("b", scale=1.0)])
    assert [point.label for point in points(board, Plane("reid-auc"))] == ["a scale=1.0", "a scale=2.0", "b"]


def test_labels_leave_out_what_most_rows_of_the_method_have() -> None:
    more = [*pair("a", scale=1.0, width=2.0), *pair("a", scale=1.0, width=3.0), *pair("a", scale=4.0, width=5.0)]
    labels = [point.label for point in points(drawn(more), Plane("reid-auc"))]
    assert labels == ["a width=2.0", "a width=3.0", "a scale=4.0,width=5.0"]


def test_reference_methods_are_left_out_of_the_picture_that_they_would_stretch() -> None:
    def made(method: str, role: str | None) -> list[Record]:
        far = score(50.0, better="higher")
        found = [
            record(method, "sets", {"nearest-neighbour-distance": far}, kind="sets"),
            record(method, "linear-probe", {"linear-probe-auc": utility(0.5)}, kind="linear-probe"),
        ]
        return [one.model_copy(update={"method": one.method.model_copy(update={"role": role})}) for one in found]

    board = drawn([*made("noise", "keeps nothing"), *made("cvae", None)])
    plane = next(plane for plane in PLANES if plane.across == "nearest-neighbour-distance")
    assert [point.label for point in points(board, plane)] == ["cvae"]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-200, 1e200, 1.7e308, -1.7e308])
def test_figures_of_any_size_are_drawn(value: float, log: bool) -> None:
    made = axis([score(value, -1.7e308, 1.7e308), score(1.0)], 0, 100, log=log)
    assert 0 <= made.at(value) <= 100
    assert 0 <= axis([score(value)], 0, 100, log=log).at(value) <= 100
