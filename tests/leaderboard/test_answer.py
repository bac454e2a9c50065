"""The answer of the front page in each of its cases, and the data set that it is for."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import pytest
from made.board_records import auc, dataset, guesswork, record, score
from made.whole_rows import HOLDING, controls, keyed, whole

from bench.data.sets import medimeta, medmnist
from bench.plugins import registry
from leaderboard.answer import HIDDEN, RADIOGRAPHS, View, answer, on_gpu, subject, views
from leaderboard.edition import Edition
from leaderboard.intake import Intake
from leaderboard.pages import render
from leaderboard.plots import points
from leaderboard.row_schema import BoardRow, Figure

PROBE = "linear-probe-auc"
RAW = {"identity": "hides nothing", "noise": "keeps nothing"}


def edition(*methods: str) -> Edition:
    """A board with a row of each method, all alike."""
    made = [one for method in methods for one in whole(method, 0.6)]
    return Edition.of(Intake((*made, *controls(HOLDING)), {}))


def row(like: BoardRow, method: str, use: float | None, leak: float, **more: Any) -> BoardRow:
    """A row with a utility (95 % interval: .03 on both sides) and an upper end of its leak."""
    reid = like.figures["reid-auc"].model_copy(update={"value": leak - 0.01, "low": leak - 0.02, "high": leak})
    figures = {"reid-auc": reid, "guesswork": like.figures["guesswork"]}
    if use is not None:
        figures["utility-auc"] = Figure(value=use, low=use - 0.03, high=use + 0.03, null=0.5)
    usual = {"plugin": method, "method": method, "id": method, "variant": "", "verdict": "leaks", "label": "leaks"}
    usual |= {"bound": None, "complete": True, "utility": "utility-auc", "figures": figures}
    return like.model_copy(update=usual | {"reference": RAW.get(method, "")} | more)


def safe(like: BoardRow, method: str, use: float | None, bound: float, **more: Any) -> BoardRow:
    told = {"verdict": "no leak above a bound", "label": f"no leak above {bound} shown", "bound": bound}
    return row(like, method, use, bound, **(told | more))


@pytest.fixture(scope="module")
def board() -> Edition:
    return edition("a")


@pytest.fixture(scope="module")
def like(board: Edition) -> BoardRow:
    return next(row for row in board.rows if row.plugin == "a")


def said(board: Edition, *rows: BoardRow) -> str:
    return answer(rows, board.named).text


def test_where_none_qualifies_the_nearest_on_either_side_are_named_with_what_they_lack(
    board: Edition, like: BoardRow
) -> None:
    rows = [
        row(like, "identity", 0.9, 1.0), row(like, "sharp", 0.88, 0.97), row(like, "sharper", 0.89, 0.99),
        row(like, "dim", 0.51, 0.7, verdict="broken"),
    ]  # fmt: skip
    text = said(board, *rows)
    assert text.startswith("No method tried on synth-cxr keeps the findings and hides the patient (3 methods, 3 rows).")
    assert (
        "sharp keeps the findings (utility 0.880, 95\u00a0% 0.850 – 0.910; raw images 0.900), but leaks: "
        "AUC of the attacks up to 0.970" in text
    )
    assert "dim leaks least (AUC of the attacks up to 0.700) but is broken" in text
    assert "its utility 0.510 is not surely above chance" in text
    assert "sharper" not in text
    assert "identity" not in text


def test_an_attack_that_is_not_certified_moves_a_row_out_of_the_corner_of_good_ones(
    board: Edition, like: BoardRow
) -> None:
    found = row(like, "found", 0.85, 0.52, verdict="not certified", label="not certified")
    reid, guesses = found.figures["reid-auc"], found.figures["guesswork"]
    beyond = {
        "reid-auc": reid.model_copy(update={"beyond": 0.99}),
        "guesswork": guesses.model_copy(update={"beyond": 1}),
    }
    found = found.model_copy(update={"figures": found.figures | beyond})
    rows = [row(like, "identity", 0.9, 1.0), found]
    assert found.leak == 0.99
    assert "has no bound (not certified): AUC of the attacks up to 0.990" in said(board, *rows)
    (view,) = views(rows, board.named)
    assert [point.across.value for point in points(view.rows, view.plane) if point.row.plugin == "found"] == [0.99]


def test_a_row_that_hides_and_keeps_too_little_is_named_before_one_that_leaks_less_surely(
    board: Edition, like: BoardRow
) -> None:
    text = said(board, row(like, "identity", 0.9, 1.0), safe(like, "dim", 0.7, 0.55), row(like, "sharp", 0.88, 0.97))
    assert "dim hides the patient (AUC of the attacks at most .55), but its utility 0.700 is below the 0.820" in text


def test_rows_that_qualify_are_counted_by_method_and_named_most_useful_first(board: Edition, like: BoardRow) -> None:
    rows = [
        row(like, "identity", 0.9, 1.0), row(like, "sharp", 0.89, 0.97),
        safe(like, "good", 0.85, 0.57), safe(like, "better", 0.88, 0.58), safe(like, "good", 0.84, 0.55, id="again"),
    ]  # fmt: skip
    text = said(board, *rows)
    assert text.startswith("2 of 3 methods tried on synth-cxr keep the findings and hide the patient")
    assert text.index(
        "better, utility 0.880, 95\u00a0% 0.850 – 0.910 (raw images 0.900), AUC of the attacks at most .58"
    ) < text.index("good")
    assert text.count("good") == 1
    assert text.endswith("A stronger attack may still find more.")
    assert "No method" not in text


@pytest.mark.parametrize("qualifies", [True, False])
def test_an_only_row_is_called_that(board: Edition, like: BoardRow, qualifies: bool) -> None:
    alone = safe(like, "alone", 0.85, 0.55) if qualifies else row(like, "alone", 0.85, 0.9)
    text = said(board, row(like, "identity", 0.9, 1.0), alone)
    verbs = "keeps the findings and hides" if qualifies else "does not both keep the findings and hide"
    assert text.startswith(f"The only method tried on synth-cxr {verbs} the patient")
    assert "Nearest" not in text


@pytest.mark.parametrize(
    "more",
    [{"complete": False}, {"bound": HIDDEN + 0.01}, {"trusted": False}, {"looked_up": "it carries them"},
     {"verdict": "no verdict", "bound": None}],
    ids=["incomplete panel", "wide bound", "author alone", "looked up", "no verdict"],
)  # fmt: skip
def test_a_doubtful_row_does_not_qualify(board: Edition, like: BoardRow, more: dict[str, Any]) -> None:
    doubtful = safe(like, "doubtful", 0.88, 0.55).model_copy(update=more)
    rows = [row(like, "identity", 0.9, 1.0), row(like, "sharp", 0.89, 0.97), doubtful]
    assert answer(rows, board.named).qualifying == ()
    assert answer([*rows, safe(like, "sound", 0.88, 0.55)], board.named).qualifying[0].plugin == "sound"


def test_data_on_which_raw_images_are_at_chance_have_no_utility_to_speak_of(board: Edition, like: BoardRow) -> None:
    lost = {"utility-auc": Figure(status="no-power", reason="raw images have Utility AUC 0.510")}
    rows = [row(like, name, None, 0.8).model_copy(update={"figures": like.figures | lost}) for name in ("a", "b")]
    found = answer(rows, board.named)
    assert not found.has_utility
    assert "On synth-cxr raw images cannot be told from chance" in found.text
    assert "No method tried hides the patient (2 methods, 2 rows)" in found.text
    hiding = safe(like, "c", None, 0.55)
    assert "1 of 3 methods tried hides the patient from the attacks that ran: c" in said(board, *rows, hiding)


def test_data_without_an_attacked_method_say_so(board: Edition, like: BoardRow) -> None:
    assert said(board, row(like, "identity", 0.9, 1.0)) == "No method has been attacked on synth-cxr yet."


def placed(like: BoardRow, name: str, count: int, use: float | None = 0.8) -> list[BoardRow]:
    more = {"dataset": name, "data": name, "data_name": name, "section": name}
    return [row(like, f"m{number}", use, 0.9, id=f"{name}-{number}", **more) for number in range(count)]


def order(board: Edition, *sets: list[BoardRow]) -> list[str]:
    return [view.name for view in views([row for some in sets for row in some], board.named)]


def test_the_leading_set_is_of_patients_then_simulated_then_the_one_with_more_rows(
    board: Edition, like: BoardRow
) -> None:
    sets = [placed(like, "digits", 9), placed(like, "synth-cxr", 5), placed(like, "rsna", 2), placed(like, "nih", 3)]
    assert order(board, *sets) == ["nih", "rsna", "synth-cxr", "digits"]
    assert order(board, placed(like, "nih", 9, None), *sets[:3]) == ["rsna", "nih", "synth-cxr", "digits"]
    assert order(board, placed(like, "nih as public-cnn", 9), placed(like, "rsna", 1)) == ["rsna", "nih as public-cnn"]


def test_of_sets_that_fill_the_table_that_with_the_hardest_findings_leads(board: Edition, like: BoardRow) -> None:
    def measured(name: str, count: int, raw: float) -> list[BoardRow]:
        first, *others = placed(like, name, count + 1, raw)
        return [first.model_copy(update={"reference": "hides nothing"}), *others]

    easy, hard, few = measured("kermany-cxr", 19, 0.99), measured("nih", 15, 0.78), measured("rsna", 14, 0.6)
    assert order(board, easy, hard, few) == ["nih", "kermany-cxr", "rsna"]
    assert order(board, easy, hard[:-1], few) == ["kermany-cxr", "nih", "rsna"]


def test_a_view_is_of_the_preset_with_most_rows_and_has_at_most_fifteen_lines(board: Edition, like: BoardRow) -> None:
    many = [one.model_copy(update={"preset": "standard"}) for one in placed(like, "nih", 18)]
    (view,) = views([*placed(like, "nih", 3), *many], board.named)
    assert (view.preset, len(view.lines), view.more) == ("standard", 15, 3)
    assert view.lines[: len(view.answer.nearest)] == view.answer.nearest


def test_every_loader_that_is_said_to_read_radiographs_is_there() -> None:
    flags = {"medmnist": medmnist._catalogue(), "medimeta": medimeta._ORIGINS}
    for name in RADIOGRAPHS:
        loader, _, flag = name.partition(":")
        assert loader in registry.own("datasets")
        assert not flag or flag in flags[loader], name
    assert subject("folder[path=x]") == subject("medmnist:pathmnist@28") == subject("[") == "other data"


def test_throughput_on_an_accelerator_stands_beside_a_method_or_is_missed_once(board: Edition, like: BoardRow) -> None:
    rows = placed(like, "nih", 2)
    (without,) = views(rows, board.named)
    fast = {"throughput": Figure(value=14730.0)}
    card = rows[0].model_copy(
        update={"device": "cuda", "figures": fast, "throughput_machine": "a card", "verdict": "no attack"}
    )
    (beside,) = views([*rows, card.model_copy(update={"id": "card"})], board.named)
    assert without.gpu == {}
    assert beside.gpu["m0"][1] == "a card"
    assert "m1" not in beside.gpu


def test_the_front_page_shows_x_rays_alone_where_there_are_any() -> None:
    digits = [one.model_copy(update={"dataset": dataset("digits")}) for one in whole("blur", 0.9)]
    mixed = Edition.of(
        Intake((*whole("a", 0.6), *controls(HOLDING), *(keyed(one, cell="digits/blur") for one in digits)), {})
    )
    page = str(render(mixed)["index.html"].make())
    assert re.findall(r'<section class="set" id="([a-z]+)-', page) == ["synth"]
    alone = Edition.of(Intake(tuple(digits), {}))
    assert re.findall(r'<section class="set" id="([a-z]+)-', str(render(alone)["index.html"].make())) == ["digits"]


def test_an_incomplete_panel_wears_no_green(board: Edition, like: BoardRow) -> None:
    from leaderboard.downloads import COLOURS, GREY, badge_json, colour
    from leaderboard.environment import environment

    macro = environment().get_template("lines.html").module.verdict  # type: ignore[attr-defined]
    sound, doubtful = safe(like, "a", 0.8, 0.55), safe(like, "a", 0.8, 0.55, complete=False)
    assert (colour(sound), colour(doubtful)) == (COLOURS["no leak above a bound"], GREY)
    assert GREY.lstrip("#") in badge_json(doubtful)
    assert ' part"' not in macro(sound.verdict, sound.label, sound.complete)
    assert ' part"' in macro(doubtful.verdict, doubtful.label, doubtful.complete)
    assert ' part"' not in macro("broken", "broken", False)  # red stays red


@pytest.mark.parametrize("status", ["failed", "timed-out"])
def test_a_panel_whose_attack_stopped_is_incomplete(status: str) -> None:
    stopped = keyed(record("a", "relational", status=status, reason="60 s", phase="attack"))
    rows = Edition.of(Intake((*whole("a", 0.6), stopped, *controls(HOLDING)), {})).rows
    assert [row.complete for row in rows if row.plugin == "a"] == [False]


def test_a_panel_without_controls_or_without_attacks_on_pairs_is_incomplete() -> None:
    bare = Edition.of(Intake(tuple(whole("a", 0.6)), {})).rows
    assert [row.complete for row in bare] == [False]
    members = score(0.5, 0.45, 0.55, null=0.5, null_low=0.45, null_high=0.55, p=0.5)
    from made.board_records import plugin

    only = record("cvae", "membership-dcr", {"membership-auc": members}, kind="membership", attack=plugin("dcr", {}))
    assert [row.complete for row in Edition.of(Intake((keyed(only),), {})).rows] == [False]


def test_a_certified_attack_that_trains_nothing_completes_its_panel() -> None:
    plain = [
        one.model_copy(update={"attack": one.attack.model_copy(update={"name": "nearest-neighbour"})})
        if one.attack
        else one
        for one in (*whole("a", 0.6), *controls(HOLDING))
    ]
    rows = Edition.of(Intake(tuple(keyed(one) for one in plain), {})).rows
    assert [row.complete for row in rows if row.plugin == "a"] == [True]


def test_a_view_draws_rows_at_the_upper_end_of_their_leak(board: Edition, like: BoardRow) -> None:
    from leaderboard.plots import PHONE, WIDE, points, scatter

    rows = [row(like, "a", 0.8, 0.9), safe(like, "b", 0.85, 0.58)]
    (view,) = views(rows, board.named)
    assert isinstance(view, View)
    assert [point.across.value for point in points(rows, view.plane)] == [0.9, 0.58]
    for canvas in (WIDE, PHONE):
        svg = str(scatter(rows, view.plane, board.named, "", canvas))
        assert svg.count('class="name"') == 2
        assert svg.count('class="mark family-5"') == 2  # plug-ins of others


def test_rows_of_a_family_share_a_colour_and_those_of_another_have_their_own(board: Edition, like: BoardRow) -> None:
    from leaderboard.plots import families, scatter

    rows = [row(like, name, 0.8, 0.9) for name in ("syfer", "dauntless", "dp-simple")]
    (view,) = views(rows, board.named)
    svg = str(scatter(rows, view.plane, board.named, ""))
    assert (svg.count('class="mark family-0"'), svg.count('class="mark family-1"')) == (2, 1)
    assert families(rows) == [(0, "keyed encoding"), (1, "noise")]


def test_every_method_of_the_project_that_is_ranked_has_a_family() -> None:
    from bench.plugins import registry
    from leaderboard.plots import FAMILIES

    placed = [name for names in FAMILIES.values() for name in names]
    ranked = {name for name in registry.own("methods") if getattr(registry.load("methods", name), "role", None) is None}
    assert sorted(placed) == sorted(ranked - {"imported", "known-leak"})


def test_the_page_of_a_row_goes_from_the_verdict_to_the_reasons_for_missing_figures() -> None:
    failed = keyed(record("a", "slow", status="failed", reason="out of memory", phase="attack"))
    board = Edition.of(Intake((*whole("a", 0.6), failed, *controls(HOLDING)), {}))
    row = next(row for row in board.rows if row.plugin == "a")
    page = str(render(board)[f"cells/{row.id}.html"].make())
    order = ["answer-line", "Headline figures", "Attacks, strongest first", "Claim against what was shown", "Evidence",
             "Repeat this row", "Cite this row", "for places without a figure"]  # fmt: skip
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    assert page.count("How to read it") >= 2
    assert f"@misc{{{row.id}," in page


def test_attacks_of_a_row_stand_strongest_first_and_hollow_without_controls() -> None:
    from leaderboard.plots import attack_dots, dot_plot

    weak = keyed(record("a", "relational", {"reid-auc": auc(0.55), "guesswork": guesswork(50)}))
    board = Edition.of(Intake((*whole("a", 0.6), weak, *controls(HOLDING)), {}))
    dots = attack_dots(next(board.row_of(row) for row in board.rows if row.plugin == "a"))
    assert [(dot.label, dot.score.value, dot.certified) for dot in dots] == [
        ("contrastive", 0.6, True), ("relational", 0.55, False),
    ]  # fmt: skip
    assert ["hollow" in dot_plot(dot) for dot in dots] == [False, True]
    outside = dataclasses.replace(dots[0], score=auc(0.1))  # an AUC below the axis stands at its end
    assert 'cx="6.0"' in dot_plot(outside)


def test_the_page_of_a_data_set_begins_with_its_answer() -> None:
    board = edition("a", "b")
    (view,) = board.views
    page = str(render(board)[f"data/{view.section}.html"].make())
    assert view.answer.parts[0].text in page


def test_without_a_figure_of_raw_images_by_the_same_metric_nothing_keeps_the_findings(
    board: Edition, like: BoardRow
) -> None:
    good = safe(like, "good", 0.88, 0.55)
    assert "its utility 0.880 has no figure of raw images beside it" in said(board, good)
    named = {**board.named, PROBE: board.named["utility-auc"]}
    probe = Figure(value=0.75, low=0.72, high=0.78, null=0.5)
    other = good.model_copy(update={"utility": PROBE, "figures": {**like.figures, PROBE: probe}})
    raw = row(like, "identity", 0.99, 1.0)
    assert answer([raw, other], named).qualifying == ()
    both = raw.model_copy(update={"figures": raw.figures | {PROBE: probe}})
    found = answer([both, other], named)
    assert found.qualifying == (other,)
    assert (found.metric, found.least, found.raw) == (PROBE, pytest.approx(0.7), 0.75)
    (view,) = views([both, other], named)
    assert view.plane.up == PROBE


def test_a_utility_just_below_what_counts_is_printed_as_another_number(board: Edition, like: BoardRow) -> None:
    text = said(board, row(like, "identity", 0.9, 1.0), safe(like, "near", 0.81996, 0.55))
    assert "utility 0.81996 is below the 0.82000 that counts as kept" in text


def test_without_utility_each_method_that_hides_is_named_once_by_its_least_bound(
    board: Edition, like: BoardRow
) -> None:
    rows = [safe(like, "a", None, 0.58), safe(like, "a", None, 0.55, id="again"), safe(like, "b", None, 0.57)]
    text = said(board, *rows, row(like, "c", None, 0.9))
    ceiling = "AUC of the attacks at most"
    assert (
        f"2 of 3 methods tried hide the patient from the attacks that ran: a, {ceiling} .55; b, {ceiling} .57." in text
    )
    assert text.endswith("A stronger attack may still find more.")


def test_a_set_with_reference_rows_alone_never_leads(board: Edition, like: BoardRow) -> None:
    bare = [one.model_copy(update={"reference": "hides nothing"}) for one in placed(like, "nih", 3)]
    assert order(board, bare, placed(like, "synth-cxr", 1), placed(like, "digits", 1)) == ["synth-cxr", "digits", "nih"]


def test_no_rate_on_an_accelerator_is_taken_from_a_row_that_only_its_author_measured(like: BoardRow) -> None:
    mine = like.model_copy(update={"device": "cuda", "figures": {"throughput": Figure(value=10.0)}})
    theirs = mine.model_copy(update={"trusted": False, "figures": {"throughput": Figure(value=1e9)}})
    assert [figure.value for figure, _ in on_gpu([mine, theirs]).values()] == [10.0]
    assert on_gpu([theirs]) == {}


def test_a_row_that_publishes_a_trained_model_is_said_to_publish_no_images(board: Edition, like: BoardRow) -> None:
    rows = [
        row(like, "identity", 0.9, 1.0),
        safe(like, "model", 0.88, 0.55, kind="a trained model", variant="epsilon=1"),
    ]
    assert "model (epsilon=1; a trained model, no images), utility 0.880" in said(board, *rows)
    images = rows[1].model_copy(update={"kind": "samples of a generator", "variant": ""})
    assert "model, utility 0.880" in said(board, rows[0], images)


def test_a_winner_whose_bound_is_on_membership_hides_who_is_in_the_data_and_no_more(
    board: Edition, like: BoardRow
) -> None:
    claim = {"derived": 10.0, "per": "image", "claim_kind": "finite ε", "public_model": 0.75}
    rows = [
        row(like, "identity", 0.9, 1.0),
        safe(like, "drawn", 0.88, 0.53, verdict="no membership leak above a bound").model_copy(update=claim),
    ]
    expected = (
        "The only method tried on synth-cxr keeps the findings and hides who is in the data, on average, from the "
        "attacks that ran: drawn, utility 0.880, 95\u00a0% 0.850 – 0.910 (raw images 0.900, public data alone 0.750), "
        "AUC of the attacks on members at most .53, derived ε 10.0 per image. A stronger attack may still find more."
    )
    assert said(board, *rows) == expected
    both = said(board, *rows, safe(like, "bound", 0.87, 0.53, public_model=0.75))
    assert both.startswith("2 of 2 methods tried on synth-cxr keep the findings and hide the patient or who is in")
    assert both.count("public data alone 0.750") == 2
    assert both.count("raw images") == 1


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"derived": 0.5, "per": "pixel", "claim_kind": "finite ε"}, ""),
        ({"derived": math.inf, "per": "image", "claim_kind": "no finite ε"}, ""),
        ({"derived": 10.0, "per": "image", "claim_kind": "violated"}, ", its claim refuted by its audit"),
    ],
)
def test_a_claim_stands_beside_a_winner_if_it_is_of_an_image_and_holds(
    board: Edition, like: BoardRow, claim: dict[str, Any], words: str
) -> None:
    rows = [row(like, "identity", 0.9, 1.0), safe(like, "bound", 0.88, 0.53).model_copy(update=claim)]
    assert f"AUC of the attacks at most .53{words}. A stronger attack" in said(board, *rows)


def test_sets_with_few_methods_have_no_tab_but_a_link_to_their_tables() -> None:
    few = dataset("nih under known-pairs[k=5]", fingerprint="few")
    more = [one for name in ("a", "b", "c") for one in whole(name, 0.6)]
    apart = keyed(record("a", scores={"reid-auc": auc(0.7), "guesswork": guesswork(50)}, dataset=few,
                         eve="known-pairs[k=5]"), cell="few/a")  # fmt: skip
    pages = render(Edition.of(Intake((*more, apart, *controls(HOLDING)), {})))
    front = str(pages["index.html"].make())
    assert "Eve knows 5 pairs" not in front
    assert '<a href="data/index.html">1 more table</a>' in front
    assert "nih (Eve knows 5 pairs)" in str(pages["data/index.html"].make())
