from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Literal

import pytest
from made.board_records import auc, claim, guesswork, metrics, plugin, record, score, utility, word

import leaderboard
from bench.results.records import Record, ScoreRecord
from leaderboard.edition import Edition
from leaderboard.intake import Intake
from leaderboard.plots import (
    LEFT,
    LETTER,
    PHONE,
    TOP,
    WIDE,
    Canvas,
    Curve,
    Plane,
    axis,
    budget_plot,
    curves,
    front,
    points,
    scatter,
)
from leaderboard.row_schema import BoardRow, Figure


def placed(name: str, leak: float, use: float) -> list[Record]:
    return [record(name, scores={"reid-auc": auc(leak)}), word(name),
            record(name, "utility", {"utility-auc": utility(use)}, kind="utility")]  # fmt: skip


def pair(method: str, seed: int = 0, **parameters: float) -> list[Record]:
    more = {"parameters": parameters, "seed": seed}
    return [
        record(method, scores={"reid-auc": auc(0.7), "guesswork": guesswork(9)}, **more),
        record(method, "utility", {"utility-auc": utility(0.8)}, kind="utility", **more),
        word(method, **more),
    ]


def board(records: list[Record]) -> Edition:
    return Edition.of(Intake(tuple(records), {}))


def drawn(records: list[Record]) -> list[BoardRow]:
    return list(board(records).rows)


def picture(records: list[Record], metric: str = "reid-auc") -> str:
    edition = board(records)
    svg = scatter(edition.rows, Plane(metric), edition.named, "../")
    assert svg is not None
    ElementTree.fromstring(svg)
    return svg


def figure(score: ScoreRecord) -> Figure:
    return Figure(value=score.value, low=score.low, high=score.high)


def test_the_same_rows_give_the_same_bytes() -> None:
    assert picture([*pair("a"), *pair("b")]) == picture([*pair("a"), *pair("b")])


def test_marks_lead_to_their_rows_and_say_what_they_are() -> None:
    (line,) = drawn(pair("a"))
    svg = picture(pair("a"))
    assert f'href="../cells/{line.id}.html"' in svg
    assert "<title>a: not certified; 0.800 (0.770 – 0.830) against 0.700" in svg


def test_better_stands_to_the_right_whichever_way_a_figure_runs() -> None:
    better = axis([figure(auc(0.5)), figure(auc(0.9))], 0, 100, log=False, better="lower")
    worse = axis([figure(guesswork(1)), figure(guesswork(90))], 0, 100, log=True, better="higher")
    assert better.at(0.5) > better.at(0.9)
    assert worse.at(90) > worse.at(1)


def sides(svg: str, pattern: str) -> list[float]:
    """Numbers across the picture by a pattern of two groups."""
    return [float(place) for pair in re.findall(pattern, svg) for place in pair]


def test_figures_and_budgets_fill_the_frame_with_equal_margins() -> None:
    edition = board([point("cadp", 1.0, 0.6), point("cadp", 4.0, 0.7)])
    budgets, figures = str(budget_plot(edition.rows, edition.named)), picture(pair("a"))
    start, wide = sides(figures, r'<rect class="chance" x="([\d.]+)" y="18" width="([\d.]+)"')
    whiskers = sides(figures, r'class="whisker" d="M([\d.]+) [\d.]+H([\d.]+)')
    for svg, ends in (
        (figures, [start, start + wide, *whiskers]),
        (budgets, sides(budgets, r'points="([\d.]+),[\d.]+ ([\d.]+),')),
    ):
        left, right = sides(svg, r'class="axis" d="M([\d.]+) [\d.]+V[\d.]+H([\d.]+)"')
        assert min(ends) - left == pytest.approx(right - max(ends), abs=0.2)
        assert 0.05 < (min(ends) - left) / (right - left) < 0.06


def test_the_front_holds_what_nothing_beats() -> None:
    edition = board([*placed("a", 0.9, 0.9), *placed("b", 0.6, 0.7), *placed("c", 0.7, 0.6)])
    columns = edition.named["reid-auc"], edition.named["utility-auc"]
    sure = {"certified": True}
    certified = [
        one.model_copy(update={"figures": {name: f.model_copy(update=sure) for name, f in one.figures.items()}})
        for one in edition.rows
    ]
    assert [point.row.plugin for point in front(points(certified, Plane("reid-auc")), *columns)] == ["a", "b"]
    assert {one.verdict for one in edition.rows} == {"not certified"}
    assert front(points(edition.rows, Plane("reid-auc")), *columns) == []  # their figures support no claim
    leaky = [one.model_copy(update={"verdict": "membership leaks"}) for one in edition.rows]  # by the other panel
    assert front(points(leaky, Plane("reid-auc")), *columns) == []


@pytest.mark.parametrize("name", ["$\\frac{", "<script>alert(1)</script>--", "方法", "x" * 300, "a\nb", '"&amp;'])
def test_any_method_name_gives_a_well_formed_picture(name: str) -> None:
    assert "<script" not in picture(pair(name))


def test_axes_are_named_by_the_records_whatever_they_say() -> None:
    renamed = metrics("reid-auc")["reid-auc"].model_copy(update={"title": "<script>\n方法"})
    made = [one.model_copy(update={"metrics": {**one.metrics, "reid-auc": renamed}}) for one in pair("a")]
    assert "against &lt;script&gt;" in picture(made)


def test_rows_without_both_figures_are_not_drawn() -> None:
    edition = board([record(scores={"reid-auc": auc(0.7)})])
    assert scatter(edition.rows, Plane("reid-auc"), edition.named, "") is None


def test_a_row_that_attacks_on_pairs_do_not_apply_to_stands_by_its_members() -> None:
    def made(method: str, status: Literal["ok", "not-applicable"]) -> list[Record]:
        pairs = record(method, scores={"reid-auc": auc(0.7)} if status == "ok" else {}, status=status)
        members = record(
            method, "membership-dcr", {"membership-auc": auc(0.55)}, kind="membership", attack=plugin("dcr", {})
        )
        return [pairs, members, record(method, "utility", {"utility-auc": utility(0.8)}, kind="utility"), word(method)]

    asked = record("model", "classifier-membership", {"membership-auc": auc(0.55)}, kind="classifier-membership")
    model = [asked, record("model", "utility", {"utility-auc": utility(0.8)}, kind="utility"), word("model")]
    edition = board([*made("linked", "ok"), *made("generator", "not-applicable"), *model])
    plane = Plane("reid-auc", upper=True, instead="membership-auc")
    stands = {one.label: one.metric for one in points(edition.rows, plane)}
    # Whether attacks on pairs were tried on a trained model or not, they say nothing of it.
    assert stands == {"linked": "reid-auc", "generator": "membership-auc", "model": "membership-auc"}
    assert ">AUC at most, by the attacks" in str(scatter(edition.rows, plane, edition.named, ""))
    assert [one.label for one in points(edition.rows, Plane("reid-auc"))] == ["linked"]


def test_a_front_joins_no_rows_that_stand_by_different_quantities() -> None:
    def made(method: str, pairs: float | None, members: float, use: float) -> list[Record]:
        found = record(method, scores={} if pairs is None else {"reid-auc": auc(pairs)},
                       status="not-applicable" if pairs is None else "ok")  # fmt: skip
        told = record(method, "membership-dcr", {"membership-auc": auc(members)}, kind="membership",
                      attack=plugin("dcr", {}))  # fmt: skip
        return [found, told, record(method, "utility", {"utility-auc": utility(use)}, kind="utility"), word(method)]

    edition = board([
        *made("a", 0.9, 0.5, 0.9), *made("b", 0.8, 0.5, 0.8), *made("c", None, 0.7, 0.7), *made("d", None, 0.6, 0.6),
        *made("e", 0.75, 0.5, 0.5),
    ])  # fmt: skip
    held = {"certified": True}
    sure = [
        one.model_copy(update={"figures": {name: f.model_copy(update=held) for name, f in one.figures.items()}})
        for one in edition.rows
    ]
    plane = Plane("reid-auc", instead="membership-auc")
    svg = str(scatter(sure, plane, edition.named, ""))
    assert [len(line.split()) for line in re.findall(r'class="front" points="([^"]+)"', svg)] == [2, 3]
    assert sorted(one.metric for one in points(sure, plane)) == ["membership-auc"] * 2 + ["reid-auc"] * 3


def test_the_wanted_corner_is_named_by_its_own_numbers() -> None:
    edition = board([*pair("a"), *pair("b")])
    svg = str(scatter(edition.rows, Plane("reid-auc", goal=(0.65, 0.75)), edition.named, ""))
    assert re.findall(r'<text class="goal"[^>]*>([^<]+)', svg) == ["kept, AUC ≤ .65;", "only rings qualify"]


@pytest.mark.parametrize("canvas", [WIDE, PHONE])
@pytest.mark.parametrize("goal", [(0.7, 0.75), (0.55, 0.95), (0.6, 0.45)])
@pytest.mark.parametrize("use", [0.96, 0.86, 0.78])
def test_the_words_of_the_wanted_corner_lie_on_no_mark_and_in_the_frame(
    use: float, goal: tuple[float, float], canvas: Canvas
) -> None:
    edition = board([*placed("far", 0.99, 0.5), *placed("near", 0.52, use)])
    svg = str(scatter(edition.rows, Plane("reid-auc", goal=goal), edition.named, "", canvas))
    corner = re.search(r'<rect class="goal" x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', svg)
    assert corner is not None
    bottom = float(corner[2]) + float(corner[3])
    words = re.findall(r'<text class="goal" x="([\d.]+)" y="([\d.]+)" text-anchor="end">([^<]+)', svg)
    marks = [(float(x), float(y)) for x, y in re.findall(r'<path d="M([\d.]+) ([\d.]+)(?:l|h)', svg)]
    assert len(words) == len(marks) == 2
    for x, y, text in words:
        right, line = float(x), float(y)
        assert line - 12 > TOP
        assert line < canvas.floor
        assert right - LETTER * len(text) > LEFT
        assert not any(right - LETTER * len(text) < a < right and line - 12 < b + 5 < line + 4 for a, b in marks)
    assert words[0][2].startswith("↑") == (float(words[0][1]) > bottom)


@pytest.mark.parametrize("canvas", [WIDE, PHONE])
def test_the_labels_of_a_crowd_are_all_there_and_no_line_or_label_crosses_one(canvas: Canvas) -> None:
    crowd = [placed(f"method-{number:02}", 1 - 0.004 * (number % 3), 0.80 - 0.007 * number) for number in range(12)]
    edition = board(
        [one for some in [*crowd, placed("far-away", 0.5, 0.6), placed("below", 0.96, 0.51)] for one in some]
    )
    svg = str(scatter(edition.rows, Plane("reid-auc"), edition.named, "", canvas))
    names = re.findall(r'<text class="name" x="([\d.]+)" y="([\d.]+)"( text-anchor="end")?>([^<]+)', svg)
    assert len(names) == 14
    wide = 6.0  # at least so much takes a letter
    boxes = [(float(x) - wide * len(text) * bool(end), float(y) - 9, float(x) + wide * len(text) * (not end), float(y))
             for x, y, end, text in names]  # fmt: skip
    for place, (a, b, c, d) in enumerate(boxes):
        assert all(a >= g or e >= c or b >= h or f >= d for e, f, g, h in boxes[place + 1 :]), names[place]
    lines = [tuple(map(float, ends)) for ends in re.findall(r'"leader" d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', svg)]
    steps = [step / 200 for step in range(1, 200)]
    for x, y, u, v in lines:
        on = [(x + (u - x) * step, y + (v - y) * step) for step in steps]
        assert not any(a < s < c and b < t < d for s, t in on for a, b, c, d in boxes)


def test_labels_name_what_tells_the_rows_of_a_method_apart() -> None:
    some = drawn([*pair("a", scale=1.0, fixed=3), *pair("a", scale=2.0, fixed=3), *pair("b", scale=1.0)])
    assert [point.label for point in points(some, Plane("reid-auc"))] == ["a scale=1.0", "a scale=2.0", "b"]


def test_labels_leave_out_what_most_rows_of_the_method_have() -> None:
    more = [*pair("a", scale=1.0, width=2.0), *pair("a", scale=1.0, width=3.0), *pair("a", scale=4.0, width=5.0)]
    labels = [point.label for point in points(drawn(more), Plane("reid-auc"))]
    assert labels == ["a width=2.0", "a width=3.0", "a scale=4.0,width=5.0"]


def test_reference_methods_are_left_out_of_the_picture_that_they_would_stretch() -> None:
    def made(method: str, role: str | None) -> list[Record]:
        found = [
            record(method, scores={"reid-auc": auc(0.5)}),
            word(method),
            record(method, "linear-probe", {"linear-probe-auc": utility(0.5)}, kind="linear-probe"),
        ]
        return [one.model_copy(update={"method": one.method.model_copy(update={"role": role})}) for one in found]

    some = drawn([*made("noise", "keeps nothing"), *made("cvae", None)])
    plane = Plane("reid-auc", "linear-probe-auc", references=False)
    assert [point.label for point in points(some, plane)] == ["cvae"]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-200, 1e200, 1.7e308, -1.7e308])
def test_figures_of_any_size_are_drawn(value: float, log: bool) -> None:
    ends = [figure(score(value, -1.7e308, 1.7e308)), figure(score(1.0))]
    made = axis(ends, 0, 100, log=log, better="lower")
    assert 0 <= made.at(value) <= 100
    assert 0 <= axis([figure(score(value))], 0, 100, log=log, better="lower").at(value) <= 100


def point(method: str, epsilon: float | None, value: float, *, seed: int = 0, **fixed: str) -> Record:
    return record(
        method, "utility", {"utility-auc": utility(value)}, kind="utility", claim=claim(epsilon),
        parameters={"epsilon": epsilon, **fixed}, seed=seed,
    )  # fmt: skip


def lines(records: list[Record]) -> list[Curve]:
    return curves(drawn(records), "utility-auc")[0]


def test_a_curve_holds_one_method_with_all_but_its_budget_fixed_in_ascending_order() -> None:
    found = lines([
        point("cadp", 10.0, 0.8, variant="paper"), point("cadp", 2.0, 0.7, variant="paper"),
        point("cadp", 2.0, 0.6, variant="corrected"), point("cadp", 10.0, 0.65, variant="corrected"),
        point("lonely", 1.0, 0.6),
    ])  # fmt: skip
    assert [(curve.label, curve.budgets) for curve in found] == [
        ("cadp variant=corrected", (2.0, 10.0)), ("cadp variant=paper", (2.0, 10.0)),
    ]  # fmt: skip
    assert [score.value for score in found[1].figures] == [0.7, 0.8]


def test_rows_without_a_finite_bound_have_no_place_on_the_axis() -> None:
    edition = board([point("dp-image", None, 0.8), point("cadp", 1.0, 0.7)])
    assert curves(edition.rows, "utility-auc")[0] == []
    assert budget_plot(edition.rows, edition.named) is None


def test_bounds_for_single_pixels_have_no_place_among_those_for_images() -> None:
    pixel = claim(1.0).model_copy(update={"unit": "pixel"})
    found = [
        record("mosaic", "utility", {"utility-auc": utility(0.7)}, kind="utility", claim=pixel,
               parameters={"epsilon": epsilon})
        for epsilon in (1.0, 2.0)
    ]  # fmt: skip
    assert lines(found) == []


def test_one_budget_measured_twice_has_two_points() -> None:
    found = [point("cadp", 1.0, value).model_copy(update={"cell": f"on device {value}"}) for value in (0.6, 0.7)]
    (curve,) = lines(found)
    assert curve.budgets == (1.0, 1.0)
    assert sorted(one.value or 0.0 for one in curve.figures) == [0.6, 0.7]


def test_curves_of_two_seeds_are_told_apart() -> None:
    found = [
        point("cadp", epsilon, 0.7, seed=seed).model_copy(update={"cell": f"{epsilon} {seed}"})
        for epsilon in (1.0, 2.0) for seed in (0, 1)
    ]  # fmt: skip
    assert [curve.label for curve in lines(found)] == ["cadp seed 0", "cadp seed 1"]


@pytest.mark.parametrize("name", ["$\\frac{", "<script>alert(1)</script>--", "x" * 300, "_hidden"])
def test_any_method_name_gives_a_well_formed_picture_of_budgets(name: str) -> None:
    edition = board([point(name, 1.0, 0.6), point(name, 4.0, 0.7)])
    svg = budget_plot(edition.rows, edition.named)
    assert svg is not None
    ElementTree.fromstring(svg)
    assert "<script" not in svg


def test_a_method_called_with_its_parameters_is_not_followed_by_them_again() -> None:
    (row,) = (row for row in drawn([*pair("syfer", steps=100), *pair("blur")]) if row.plugin == "syfer")
    assert row.method == f"{row.plugin}[steps=100]"
    assert "steps=100" in row.variant
    scripts = sorted((Path(leaderboard.__file__).parent / "static").glob("*.js"))
    assert any("row.plugin" in script.read_text() for script in scripts)
    assert [script.name for script in scripts if re.search(r"row\.method\b[^;]*row\.variant", script.read_text())] == []


def test_names_in_the_picture_differ_where_rows_do() -> None:
    some = drawn([one for a in (1.0, 2.0) for b in (3.0, 4.0) for one in pair("m", a=a, b=b)])
    svg = str(scatter(some, Plane("reid-auc"), board([*pair("m", a=1.0)]).named, ""))
    names = re.findall(r'class="name"[^>]*>([^<]*)<', svg)
    assert len(names) == len(set(names)) == 4
