"""Which attacks on membership count, and what the board says of members."""

from __future__ import annotations

import pytest
import torch
from made.board_records import plugin, record, score
from made.commands import request

from bench.evaluators.membership import BY_HEART, CONTROLS, OF_OTHERS
from bench.evidence import MembershipEvidence
from bench.results.records import Record, ScoreRecord, Status
from bench.runs.request import run_specs
from leaderboard.board import rows
from leaderboard.bounds import MEMBER_CORE
from leaderboard.panel import membership_panel, panel
from leaderboard.reach import Ladder, step
from leaderboard.row_schema import kind
from metrics.membership import MembershipTPR


def told(value: float, p: float) -> dict[str, ScoreRecord]:
    return {"membership-auc": score(value, value - 0.05, value + 0.05, null=0.5, null_low=0.45, null_high=0.55, p=p)}


def attacking(method: str, value: float, p: float, attack: str = "dcr", role: str | None = None) -> Record:
    made = record(method, f"membership-{attack}", told(value, p), kind="membership", attack=plugin(attack, {}))
    return made.model_copy(update={"method": made.method.model_copy(update={"role": role})})


def controls(attack: str = "dcr", caught: float = 0.9, quiet: float = 0.5) -> list[Record]:
    return [
        attacking("over-fitted-cvae", caught, 0.0 if caught > 0.6 else 0.4, attack, "remembers its rows"),
        attacking("constant", quiet, 0.6 if quiet < 0.6 else 0.0, attack, "forgets its rows"),
    ]


def test_an_attack_counts_that_catches_the_over_fitted_and_not_the_constant_generator() -> None:
    mine = [attacking("cvae", 0.7, 0.0)]
    found = membership_panel(mine, [*mine, *controls()])
    assert found.members[0].standing == "certified"
    assert found.verdict == "membership leaks to dcr: Membership AUC 0.700"
    assert found.headline == "membership-dcr"


def core(**others: Record) -> tuple[list[Record], list[Record]]:
    """Records of every core attack at chance, but for `others` by name, and their controls."""
    own = [others.get(name.replace("-", "_"), attacking("cvae", 0.5, 0.6, name)) for name in MEMBER_CORE]
    return own, [made for name in MEMBER_CORE for made in controls(name)]


@pytest.mark.parametrize("missing", MEMBER_CORE)
def test_a_bound_on_members_needs_every_attack_of_its_core_list(missing: str) -> None:
    mine, pool = core()
    assert membership_panel(mine, [*mine, *pool]).word == "no membership leak above a bound"
    fewer = [one for one in mine if one.evaluator != f"membership-{missing}"]
    found = membership_panel(fewer, [*fewer, *pool])
    assert found.word == "no verdict"
    assert found.verdict.endswith(
        f"a bound needs the {len(MEMBER_CORE)} attacks of the core list: {missing} did not run"
    )


@pytest.mark.parametrize("missing", MEMBER_CORE)
def test_a_method_that_refuses_to_release_eves_rows_gets_no_bound_on_members(missing: str) -> None:
    apart = attacking("cvae", 0.5, 0.6, missing).model_copy(update={"status": "not-applicable", "scores": {}})
    mine, pool = core(**{missing.replace("-", "_"): apart})
    found = membership_panel(mine, [*mine, *pool])
    if missing == "quantile-regression":  # with few people it cannot apply, whatever the method does
        assert found.word == "no membership leak above a bound"
        assert found.verdict.endswith("by 6 attacks, 5 keys; without quantile-regression, which does not apply")
    else:
        assert found.word == "no verdict"
        assert found.verdict.endswith(f": {missing} not applicable")


def test_an_attack_of_another_name_does_not_stand_for_one_of_the_core_list() -> None:
    other = attacking("cvae", 0.5, 0.6, "lira")
    assert other.attack is not None
    other = other.model_copy(update={"attack": other.attack.model_copy(update={"name": "membership-lira"})})
    mine, pool = core(lira=other)
    pool += [one.model_copy(update={"attack": other.attack}) for one in controls("lira")]
    found = membership_panel(mine, [*mine, *pool])
    assert all(member.standing == "certified" for member in found.members)
    assert (found.word, found.verdict.endswith(": lira did not run")) == ("no verdict", True)


@pytest.mark.parametrize(
    ("pool", "standing"),
    [
        ([], "controls not run"),
        (controls()[:1], "controls not run"),
        (controls(caught=0.52), "not certified"),
        (controls(quiet=0.7), "not certified"),
    ],
)
def test_an_attack_does_not_count_where_a_control_fails_or_never_ran(pool: list[Record], standing: str) -> None:
    mine = [attacking("cvae", 0.7, 0.0)]
    found = membership_panel(mine, [*mine, *pool])
    assert found.members[0].standing == standing
    why = "the controls were not run" if standing == "controls not run" else "no attack passed its controls"
    assert found.verdict == f"membership not certified, because {why}"


def test_a_few_members_who_are_told_surely_are_told() -> None:
    people, members = torch.arange(600) // 2, torch.arange(600) < 300
    scores = torch.randperm(600, generator=torch.Generator().manual_seed(1)).double()
    scores[:60] += 600  # thirty people; the others' ranks are chance
    evidence = MembershipEvidence([scores], [members], people, 0, 0)
    sure = MembershipTPR()(evidence)
    figure = score(sure.value, null=sure.null, null_low=sure.null_low, null_high=sure.null_high, p=sure.p)
    mine = [
        record(
            "cvae", f"membership-{name}", told(0.5, 0.6) | {"membership-tpr": figure},
            kind="membership", attack=plugin(name, {}),
        )
        for name in ("dcr", "lira", "domias", "logan", "mine")
    ]  # fmt: skip
    pool = [made for name in ("dcr", "lira", "domias", "logan", "mine") for made in controls(name)]
    found = membership_panel(mine, [*mine, *pool])
    assert found.tries == 10
    assert found.word == "membership leaks"


def test_members_told_by_an_attack_without_controls_are_not_called_safe() -> None:
    mine, pool = core(lira=attacking("cvae", 0.7, 0.0, "lira"))
    without = [one for one in pool if one.evaluator != "membership-lira"]
    found = membership_panel(mine, [*mine, *without])
    assert found.word == "not certified"
    assert found.verdict.startswith("not certified (the controls of lira, which recognised members of it, were not run")
    found = membership_panel(mine, [*mine, *without, *controls("lira", quiet=0.7)])
    assert (found.word, found.verdict[-21:]) == ("no verdict", "lira is not certified")


def test_no_more_than_chance_gives_is_no_finding_and_many_figures_are_many_tries() -> None:
    mine, pool = core(**{name: attacking("cvae", 0.56, 0.0006, name) for name in ("dcr", "lira")})
    assert membership_panel(mine, [*mine, *pool]).word == "no membership leak above a bound"
    assert membership_panel(mine[:1], [*mine, *pool]).verdict == "membership leaks to dcr: Membership AUC 0.560"


def test_an_attack_with_a_higher_figure_does_not_hide_one_that_is_surer() -> None:
    mine = [attacking("cvae", 0.57, 0.0006, "lira"), attacking("cvae", 0.56, 0.00001, "dcr")]
    found = membership_panel(mine, [*mine, *controls("dcr"), *controls("lira")])
    assert (found.headline, found.verdict) == ("membership-dcr", "membership leaks to dcr: Membership AUC 0.560")


@pytest.mark.parametrize(("p", "told"), [(0.00005, True), (0.0012, False)])
def test_an_attack_that_is_sure_of_a_few_members_tells_members(p: float, told: bool) -> None:
    mine = attacking("cvae", 0.51, 0.7)
    rate = score(0.08, 0.06, 0.1, null=0.01, null_low=0.0, null_high=0.04, p=p)
    mine = mine.model_copy(update={"scores": {**mine.scores, "membership-tpr": rate}})
    own, pool = core(dcr=mine)
    found = membership_panel(own, [*own, *pool])
    expected = "membership leaks to dcr: Membership AUC 0.510, 8.0 % of them at 1 % of others"
    if told:
        assert found.verdict == expected
    else:
        assert found.label.startswith("no membership leak above .")
        assert found.verdict.startswith("no membership leak above AUC .")


def test_a_row_shows_the_strongest_attack_that_counts_and_leaves_the_pair_panel_empty() -> None:
    mine = [attacking("cvae", 0.9, 0.0, "unsound"), attacking("cvae", 0.7, 0.0)]
    pool = [*mine, *controls(), *controls("unsound", quiet=0.7)]
    row = next(row for row in rows(pool) if row.method == "cvae")
    assert (row.entries["membership-auc"].by, row.entries["membership-auc"].certified) == ("membership-dcr", True)
    assert (row.panel.members, row.attacks, row.keys) == ((), {}, 5)


def test_membership_is_no_step_on_the_ladder() -> None:
    mine = [attacking("cvae", 0.7, 0.0)]
    assert step(mine[0]) is None
    assert panel(mine, mine, Ladder([])).members == ()


def test_a_folders_word_on_its_members_supports_no_bound_and_is_said() -> None:
    def by_folder(value: float, p: float) -> Record:
        return attacking("imported", value, p).model_copy(update={"details": {"members": "the folder says"}})

    quiet, telling = ([by_folder(value, p)] for value, p in ((0.5, 0.6), (0.7, 0.0)))
    found = membership_panel(quiet, [*quiet, *controls()])
    assert found.word == "no verdict"
    assert "dcr takes a folder's word for who is a member, and no draw;" in found.verdict
    found = membership_panel(telling, [*telling, *controls()])
    assert found.word == "membership leaks"
    assert "a folder says who is a member, and no draw" in found.verdict


def test_the_suite_of_chest_x_rays_asks_synthesis_every_attack_that_a_bound_needs() -> None:
    parts = run_specs(request(["run", "--suite", "chest-x-rays"]))
    names = {"dp-merf", "dp-sgd", "distilled", "private-evolution"}
    asked = [part for part in parts if names & {str(method).split("[")[0] for method in part.methods}]
    assert {str(method).split("[")[0] for part in asked for method in part.methods} == names
    on_pairs = {"nearest-neighbour"}  # a panel that was never tried on pairs is not complete
    assert all({str(attack) for attack in part.attacks} == {*MEMBER_CORE, *on_pairs} for part in asked)
    assert all({"guesswork", "reid-auc"} <= set(map(str, part.metrics)) for part in asked)


def test_the_suite_of_chest_x_rays_gives_private_evolution_rows_with_the_findings_of_its_own() -> None:
    parts = run_specs(request(["run", "--suite", "chest-x-rays"]))
    publics = {
        choice.dataset.name: str(choice.public)
        for part in parts if any(str(method).startswith("private-evolution") for method in part.methods)
        for choice in part.choices
    }  # fmt: skip
    assert publics["nih"] == "nih"  # those of Kermany et al. and of the phantoms have other findings


def classifier(value: float, p: float, heart: float = 0.0005, others: float = 0.4) -> Record:
    """The attack on a published classifier, and the p of its two controls."""
    made = record("dp-sgd", "classifier-membership", told(value, p), kind="classifier-membership")
    held = {BY_HEART: {"AUC": 0.8, "p": heart}, OF_OTHERS: {"AUC": 0.5, "p": others}}
    return made.model_copy(update={"details": {CONTROLS: held}})


def test_a_classifier_at_chance_gets_a_bound_and_one_that_tells_its_members_does_not() -> None:
    quiet = membership_panel([classifier(0.5, 0.6)], [])
    assert (quiet.word, quiet.bound) == ("no membership leak above a bound", 0.55)
    assert quiet.label == "no membership leak above .55 shown"
    assert quiet.verdict.endswith("by the classifier's answers, one attack, 5 keys")
    loud = membership_panel([classifier(0.7, 0.0001)], [])
    assert (loud.word, loud.verdict) == (
        "membership leaks", "membership leaks from the classifier's answers: Membership AUC 0.700",
    )  # fmt: skip
    assert loud.certified == {"classifier-membership"}


@pytest.mark.parametrize(("heart", "others"), [(0.001, 0.4), (0.0005, 0.0005)])
def test_the_attack_on_a_classifier_counts_only_if_its_own_controls_hold(heart: float, others: float) -> None:
    found = membership_panel([classifier(0.5, 0.6, heart, others)], [])
    assert (found.word, found.bound) == ("not certified", None)
    assert found.verdict == "membership not certified, because no attack passed its controls"
    bare = classifier(0.5, 0.6).model_copy(update={"details": {}})
    assert membership_panel([bare], []).verdict.endswith("the controls ran without a figure")


def test_of_a_release_and_a_classifier_the_graver_verdict_counts() -> None:
    mine, pool = core()
    loud, quiet = (
        (classifier(0.7, 0.0001), "membership leaks"),
        (classifier(0.5, 0.6), "no membership leak above a bound"),
    )
    for asked, word in (loud, quiet):
        found = membership_panel([*mine, asked], [*mine, *pool])
        assert found.word == word
        assert len(found.members) == len(MEMBER_CORE) + 1
    none = [one.model_copy(update={"status": "not-applicable", "scores": {}}) for one in mine]
    found = membership_panel([*none, classifier(0.5, 0.6)], [*none, *pool])
    assert found.word == "no membership leak above a bound"  # that nothing applies to a release is no finding
    assert membership_panel(none, [*none, *pool]).word == "does not apply"


def test_a_classifier_whose_figure_is_unlikely_by_chance_has_no_bound() -> None:
    assert membership_panel([classifier(0.6, 0.04)], []).word == "membership leaks"
    quiet = membership_panel([classifier(0.6, 0.06)], [])  # two-sided p; two figures
    assert quiet.word == "no membership leak above a bound"


@pytest.mark.parametrize("status", ["failed", "timed-out", "not-applicable"])
def test_an_attack_on_a_classifier_that_did_not_end_leaves_no_bound(status: Status) -> None:
    mine, pool = core()
    stopped = classifier(0.5, 0.6).model_copy(
        update={"status": status, "scores": {}, "reason": "mine refused to train on 150 rows: too few"}
    )
    for own in ([stopped], [*mine, stopped]):
        found = membership_panel(own, [*own, *pool])
        assert found.word == "no verdict"
        assert "mine refused to train on 150 rows" in found.verdict
    none = stopped.model_copy(update={"status": "not-applicable", "reason": "mine publishes no classifier"})
    assert membership_panel([*mine, none], [*mine, *pool]).word == "no membership leak above a bound"


def test_controls_of_a_row_that_its_author_alone_measured_are_said_to_be_theirs() -> None:
    made = classifier(0.5, 0.6)
    theirs = frozenset({str(made.digest)})
    assert membership_panel([made], [], theirs).members[0].theirs
    assert not membership_panel([made], []).members[0].theirs


def test_a_row_publishes_a_trained_model_only_if_it_releases_nothing() -> None:
    mine, _ = core()
    assert kind([classifier(0.5, 0.6)]) == "a trained model"
    assert kind([*mine, classifier(0.5, 0.6)]) == "samples of a generator"
