from __future__ import annotations

from pathlib import Path

import pytest
from made.board_records import dataset, guesswork, plugin, record, score, word

from bench.api.boards import board
from bench.cli.figure_tables import print_board
from bench.results.records import PluginRecord, Record
from bench.results.results import Results
from bench.workbench.place import Place
from leaderboard.board import rows
from leaderboard.panel import panel
from leaderboard.reach import Ladder, Step, rungs, step


def pairs(guesses: float, auc: float, p: float | None = None) -> dict[str, object]:
    return {
        "guesswork": guesswork(guesses).model_copy(update={"p": p}),
        "reid-auc": score(auc, null=0.5, null_low=0.48, null_high=0.52, p=p),
    }


def control(role: str, scores: dict[str, object], attack: str = "contrastive", **more: object) -> Record:
    made = record(role, attack, scores, **more)
    return made.model_copy(update={"method": made.method.model_copy(update={"role": role})})


def holding(attack: str = "contrastive", **more: object) -> list[Record]:
    return [
        control("hides nothing", pairs(1, 1.0, 0.0), attack, **more),
        control("keeps nothing", pairs(90, 0.5, 0.6), attack, **more),
        control("keeps nothing, in secret", pairs(95, 0.5, 0.5), attack, **more),
    ]


def on_ladder(method: str, guesses: float, p: float, attack: str = "contrastive") -> Step:
    made = step(record(method, attack, pairs(guesses, 0.9, p)))
    assert made is not None
    return made


def test_an_attack_counts_where_both_controls_hold() -> None:
    mine = [record("syfer", scores=pairs(80, 0.51, 0.4))]
    found = panel(mine, [*mine, *holding()], Ladder([]))
    assert found.headline == "contrastive"
    assert found.members[0].standing == "certified"


@pytest.mark.parametrize(
    ("controls", "standing"),
    [
        ([], "controls not run"),
        (holding()[:1], "controls not run"),
        (holding(preset="paper"), "controls not run"),
        (holding(seed=1), "controls not run"),
        ([control("hides nothing", pairs(40, 0.8, 0.0)), holding()[1]], "not certified"),
        ([control("hides nothing", pairs(1, 0.9, 0.0)), holding()[1]], "not certified"),
        ([holding()[0], control("keeps nothing", pairs(3, 0.6, 0.0001))], "not certified"),
    ],
)
def test_an_attack_does_not_count_where_a_control_fails_or_never_ran(controls: list[Record], standing: str) -> None:
    mine = [record("syfer", scores=pairs(80, 0.51, 0.4))]
    found = panel(mine, [*mine, *controls], Ladder([]))
    assert found.members[0].standing == standing
    assert found.headline is None
    assert found.verdict.startswith("not certified")


def test_controls_of_an_attack_with_other_parameters_or_code_do_not_count() -> None:
    mine = [record("syfer", scores=pairs(80, 0.51, 0.4))]
    for change in ({"parameters": {"steps": 1}}, {"code": "other"}):
        others = [
            one.model_copy(update={"attack": plugin("contrastive", {}).model_copy(update=change)}) for one in holding()
        ]
        assert panel(mine, [*mine, *others], Ladder([])).members[0].standing == "controls not run"


def test_the_headline_is_the_strongest_attack_that_counts() -> None:
    mine = [
        record("syfer", "strong", pairs(2, 0.99, 0.0)),
        record("syfer", "sound", pairs(30, 0.7, 0.0)),
        record("syfer", "weak", pairs(90, 0.5, 0.9)),
    ]
    pool = [*mine, *holding("sound"), *holding("weak")]
    row = rows(mine, pool=pool)[0]
    assert row.panel.headline == "sound"
    assert row.entries["guesswork"].by == "sound"
    assert row.entries["guesswork"].certified


def test_without_a_certified_attack_the_weakest_figure_is_marked() -> None:
    row = rows([record("syfer", scores=pairs(80, 0.51, 0.4))])[0]
    assert row.entries["guesswork"].text == "80.0"
    assert not row.entries["guesswork"].certified


def test_a_break_by_an_attack_without_controls_is_told_all_the_same() -> None:
    mine = [record("syfer", scores=pairs(1, 1.0, 0.0))]
    assert "broken by contrastive; not certified, because" in panel(mine, mine, Ladder([])).verdict


def test_a_break_by_an_attack_whose_control_failed_is_told_beside_those_that_count() -> None:
    mine = [record("syfer", "strong", pairs(1, 1.0, 0.0)), record("syfer", "sound", pairs(80, 0.51, 0.4))]
    finds_what_is_not_there = [holding("strong")[0], control("keeps nothing", pairs(1, 1.0, 0.0), "strong")]
    made = panel(mine, [*mine, *holding("sound"), *finds_what_is_not_there], Ladder([]))
    assert made.word == "no verdict"
    assert made.verdict.startswith("no verdict: a bound needs the")
    assert made.verdict.endswith("; broken by strong, which is not certified")


def test_a_method_that_an_attack_without_controls_broke_is_not_certified() -> None:
    mine = [record("syfer", "strong", pairs(1, 1.0, 0.0)), record("syfer", "sound", pairs(80, 0.51, 0.4))]
    made = panel(mine, [*mine, *holding("sound")], Ladder([]))
    assert made.word == "not certified"
    assert made.verdict.startswith("not certified (the controls of strong, which broke it, were not run on")


def test_few_guesses_among_few_rows_do_not_hide_an_attack_that_beats_chance() -> None:
    few = {"guesswork": score(4.0, better="higher", null=12.0, null_low=1.0, null_high=40.0, p=0.3)}
    mine = [record("syfer", "labels", few), record("syfer", "images", pairs(2.4, 0.9, 0.0))]
    row = rows([*mine, word("syfer")], pool=[*mine, *holding("labels"), *holding("images")])[0]
    assert row.panel.headline == row.entries["guesswork"].by == "images"
    assert row.panel.verdict == "broken by images: 2.40 guesses"


def test_a_rung_is_never_put_beside_itself() -> None:
    mine = [record("dauntless", scores=pairs(80, 0.51, 0.4), parameters={"patch_size": 16}, seed=1)]
    there = [_exact(one.method) for one in (on_ladder("identity", 1, 0.0), on_ladder("dauntless", 1, 0.0))]
    ladder = [on_ladder(one.name, 1, 0.0).model_copy(update={"method": one}) for one in there]
    later = [one.model_copy(update={"method": one.method.model_copy(update={"code": "later"})}) for one in ladder]
    for known in (ladder, later):
        verdict = panel(mine, [*mine, *holding(seed=1)], Ladder(known)).verdict
        assert "; its attacks break all of identity (measured on synth-cxr)" in verdict


def test_a_control_that_failed_elsewhere_does_not_hide_one_that_ran() -> None:
    mine = [record("syfer", scores=pairs(80, 0.51, 0.4))]
    failed = [one.model_copy(update={"status": "timed-out", "scores": {}}) for one in holding()]
    assert panel(mine, [*mine, *failed, *holding()], Ladder([])).members[0].standing == "certified"


def test_limited_runs_are_no_steps_on_the_ladder() -> None:
    small = record("identity", scores=pairs(1, 1.0, 0.0), limit=20)
    row = rows([record("identity", scores=pairs(1, 1.0, 0.0), cell=small.cell)], pool=[small])[0]
    assert {rung.state for rung in row.panel.members[0].rungs} == {"not measured"}


def test_a_verdict_speaks_of_every_attack_on_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = [record("syfer", name, pairs(guesses, 0.9, 0.0), cell="d/c") for name, guesses in (("a", 1), ("b", 90))]
    for each in both:
        Results(tmp_path).keep(each, {})
    print_board(board(both[1:], Place(Results(tmp_path), tmp_path, ())))
    assert "broken by a; not certified, because" in " ".join(capsys.readouterr().out.split())


def test_what_resists_is_put_beside_the_encoders_that_resist_the_same_attacks() -> None:
    mine = [record("syfer", scores=pairs(80, 0.51, 0.4))]
    ladder = [on_ladder("identity", 1, 0.0), on_ladder("dauntless", 60, 0.5)]
    dauntless = [one.model_copy(update={"method": _exact(one.method)}) for one in ladder]
    verdict = panel(mine, [*mine, *holding()], Ladder(dauntless)).verdict
    assert "; none of its attacks breaks 1 of 2 test encoders: dauntless (measured on synth-cxr)" in verdict
    assert "private" not in verdict


def test_an_encoder_that_an_attack_does_not_apply_to_is_no_failure_of_it() -> None:
    idle = on_ladder("dauntless", 60, 0.5).model_copy(update={"status": "not-applicable", "scores": {}})
    ladder = [one.model_copy(update={"method": _exact(one.method)}) for one in (on_ladder("identity", 1, 0.0), idle)]
    mine = [record("syfer", scores=pairs(80, 0.51, 0.4))]
    verdict = panel(mine, [*mine, *holding()], Ladder(ladder)).verdict
    assert "; its attacks break all of identity (measured on synth-cxr)" in verdict
    other = on_ladder("identity", 60, 0.5, "other").model_copy(
        update={"status": "not-applicable", "scores": {}, "dataset": "a-table"}
    )
    mine += [record("syfer", "other", pairs(80, 0.51, 0.4))]
    ladder += [other.model_copy(update={"method": _exact(other.method)})]
    both = [*holding(), *holding("other")]
    assert "; its attacks break all of identity (measured on synth-cxr)" in (
        panel(mine, [*mine, *both], Ladder(ladder)).verdict
    )


def _exact(method: PluginRecord) -> PluginRecord:
    """With the parameters that the method has by default."""
    return method if method.name == "identity" else method.model_copy(update={"parameters": {"patch_size": 16}})


def test_a_break_is_told_with_its_guesses() -> None:
    mine = [record("syfer", scores=pairs(1.2, 0.99, 0.0))]
    assert panel(mine, [*mine, *holding()], Ladder([])).verdict == "broken by contrastive: 1.20 guesses"


def test_few_guesses_that_chance_makes_too_are_no_break() -> None:
    mine = [record("syfer", scores=pairs(4, 0.51, 0.11))]
    assert panel(mine, [*mine, *holding()], Ladder([])).word == "no verdict"


@pytest.mark.parametrize(("keys", "few"), [(0, True), (1, True), (2, True), (3, False)])
def test_keys_too_few_to_break_anything_do_not_speak_for_a_method(keys: int, few: bool) -> None:
    mine = [record("syfer", scores=pairs(1, 1.0, 0.1), keys=keys)]
    made = panel(mine, [*mine, *holding()], Ladder([]))
    assert made.word == "no verdict"
    assert ("even raw images would not count as broken" in made.verdict) == few


def test_attacks_together_leak_at_five_percent_and_the_best_of_several_is_corrected() -> None:
    # Records of earlier versions hold two-sided p and no exchanges: half of p, times the number of attacks.
    for p, both in ((0.04, "leaks"), (0.06, "no verdict")):
        mine = [record("syfer", name, pairs(80, 0.53, p)) for name in ("a", "b")]
        alone = panel(mine[:1], [*mine[:1], *holding("a")], Ladder([]))
        assert alone.word == "leaks"
        assert alone.p == pytest.approx(p / 2)
        made = panel(mine, [*mine, *holding("a"), *holding("b")], Ladder([]))
        assert made.word == both
        assert made.p == pytest.approx(p)
        assert "Bonferroni, for these records hold no exchanges" in alone.verdict


def test_an_attack_that_is_worse_than_chance_is_no_leak() -> None:
    mine = [record("syfer", scores=pairs(300, 0.4, 0.0001))]
    made = panel(mine, [*mine, *holding()], Ladder([]))
    assert made.word == "no verdict"
    assert made.p == pytest.approx(1 - 0.0001 / 2)


def test_rows_in_groups_that_nobody_tells_apart_leak_and_read_one_in_k() -> None:
    groups = guesswork(9.2).model_copy(update={"p": 0.0, "parts": {"first guess": score(0.1, null=0.001)}})
    mine = [record("k-same", scores={**pairs(9.2, 0.99, 0.0), "guesswork": groups})]
    verdict = panel(mine, [*mine, *holding()], Ladder([])).verdict
    assert verdict.startswith(
        "leaks: ReID AUC 0.990 by contrastive; p below 0.0001 that chance does as well, over 1 attack ("
    )
    assert (
        "surely better than chance: contrastive, the first guess of contrastive right about 1 in 10 times; " in verdict
    )


def test_a_method_that_chance_alone_tells_from_chance_keeps_its_mark() -> None:
    """The weakest of twelve attacks is held against the weakest of twelve of chance."""
    for p, mark in ((0.01, "inside"), (0.004, "worse")):
        mine = [record("syfer", f"a{number}", pairs(90, 0.5, 0.5)) for number in range(11)]
        mine.append(record("syfer", "last", pairs(40, 0.53, p)))
        assert rows(mine)[0].entries["guesswork"].against_null == mark


def test_a_panel_holds_the_reach_of_its_attacks() -> None:
    mine = [record("syfer", scores=pairs(80, 0.51, 0.4))]
    (member,) = panel(mine, [*mine, *holding()], Ladder([on_ladder("identity", 1, 0.0)])).members
    assert {rung.method: rung.state for rung in member.rungs}["identity"] == "broken"
    assert [rung.method for rung in member.rungs] == list(rungs())


def test_a_leak_to_who_holds_other_images_stands_beside_that_of_raw_ones() -> None:
    def told(value: float, area: float, p: float) -> dict[str, object]:
        return {
            "patient-reid-auc": score(value, value - 0.02, value + 0.02, null=0.5, null_low=0.48, null_high=0.52, p=p),
            "reid-auc": score(area, null=0.5, null_low=0.48, null_high=0.52, p=p),
            "guesswork": guesswork(1.0),
        }

    apart = {"dataset": dataset("synth-cxr under other-study"), "eve": "other-study"}
    mine = [record("dauntless", scores=told(0.73, 0.95, 1e-9), **apart)]
    pool = [
        control("hides nothing", told(0.87, 0.96, 1e-9), **apart),
        control("keeps nothing", told(0.5, 0.5, 0.6), **apart),
        control("keeps nothing, in secret", told(0.5, 0.5, 0.5), **apart),
    ]
    found = panel(mine, [*mine, *pool], Ladder([]))
    assert found.word == "leaks"
    assert "0.730 (0.710 – 0.750) by contrastive" in found.verdict
    assert "0.950" in found.verdict
    assert "in raw images it has" in found.verdict
    assert "0.870" in found.verdict
