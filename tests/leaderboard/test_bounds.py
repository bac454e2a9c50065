"""Attacks judged together, and the bounds that they support: levels under dependence, gaps, convergence, power."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from made.board_records import dataset, plugin, record, score
from scipy.stats import binomtest, rankdata

from bench.plugins import registry
from bench.results.record_parts import ExchangesRecord, ReplicatesRecord, ScoreRecord
from bench.results.records import Record
from bench.statistics.upper_limits import upper_limit
from bench.types import LEARNING, LearningCurve
from leaderboard.bounds import CORE, Bound, bound, combined, power, primary, surely

SETS = 200
CURVE = LearningCurve("ReID AUC", ((0, 0.5), (9, 0.6)), converged=True, reason="it rose no more")


def exchanges(figures: np.ndarray, people: str = "0" * 16) -> ExchangesRecord:
    """Of figures by exchange, the true links first; more is worse for the owner."""
    tails = (len(figures) + 1 - rankdata(figures, "min")).astype("<u2")
    return ExchangesRecord(tails=base64.b64encode(tails.tobytes()).decode(), spread=0.01, people=people)


def replicates(value: float) -> ReplicatesRecord:
    by_key = value + 0.004 * np.linspace(-1, 1, 5)
    table = (by_key[:, None] + 0.01 * np.random.default_rng(0).standard_normal((5, 50))).astype("<f4")
    return ReplicatesRecord(
        by_key=by_key.tolist(), resampled=base64.b64encode(table.tobytes()).decode(), degrees=49, people="0" * 16,
        scale="share",
    )  # fmt: skip


def figure(value: float, figures: np.ndarray | None = None, **more: object) -> ScoreRecord:
    drawn = {} if figures is None else {"exchanges": exchanges(figures), "sides": 1}
    usual = {"null": 0.5, "null_low": 0.48, "null_high": 0.52, "unit": "AUC", "replicates": replicates(value)}
    return score(value, value - 0.02, value + 0.02, **usual | drawn | more)  # type: ignore[arg-type]


def attack(name: str, value: float = 0.5, *, learned: Sequence[LearningCurve] = (), **more: object) -> Record:
    scores = {"reid-auc": figure(value, p=0.5), "top-1": figure(0.01, n=300)} if more.get("status") is None else {}
    details = {LEARNING: [curve.content() for curve in learned]}
    return record("syfer", name, scores, attack=plugin(name, {}), **{"details": details, **more})


def panel_of(**changed: Record) -> list[Record]:
    return [changed.get(name.replace("-", "_"), attack(name)) for name in CORE]


def joint(own: np.ndarray, others: np.ndarray) -> float:
    """P of attacks' figures (attacks,) among exchanges (attacks, sets)."""
    records = [
        record("syfer", f"a{number}", {"reid-auc": figure(0.5, np.concatenate(([first], rest)), p=0.5)})
        for number, (first, rest) in enumerate(zip(own, others, strict=True))
    ]
    found = combined(records)
    assert found is not None
    assert found.attacks == len(own)
    return found.p


def test_several_trainings_support_a_bound_only_if_figures_say_which_attacked_each_key() -> None:
    curves = [replace(CURVE, part=f"training {number}") for number in (1, 2)]
    unsaid = attack("contrastive", 0.5, learned=curves)
    records = panel_of(contrastive=unsaid)
    found = bound(records, records)
    assert isinstance(found, str)
    assert "contrastive does not say which training attacked each key" in found
    apart = {"by_key": [0.48, 0.48, 0.48, 0.53, 0.53], "trainings": [0, 0, 0, 1, 1]}
    table = replicates(0.5).model_copy(update=apart)
    figures = {**unsaid.scores, "reid-auc": figure(0.5, p=0.5, replicates=table)}
    records = panel_of(contrastive=unsaid.model_copy(update={"scores": figures}))
    wider = bound(records, records)
    assert isinstance(wider, Bound)
    alone = upper_limit(replicates(0.5).model_copy(update={"by_key": apart["by_key"]}).read(), people=300)
    assert wider.area > alone + 0.05


@pytest.mark.parametrize("alike", [0.0, 0.7, 1.0])
def test_the_joint_test_keeps_its_level_however_alike_attacks_are(alike: float) -> None:
    random, cells, attacks = np.random.default_rng(int(10 * alike)), 300, 12
    alarms = 0
    for _ in range(cells):
        shared = random.standard_normal(SETS)
        drawn = alike**0.5 * shared + (1 - alike) ** 0.5 * random.standard_normal((attacks, SETS))
        alarms += joint(drawn[:, 0], drawn[:, 1:]) <= 0.05
    assert binomtest(alarms, cells, 0.05, alternative="greater").pvalue > 0.01


def test_the_joint_test_finds_one_strong_attack_and_many_weak_ones() -> None:
    random = np.random.default_rng(0)
    drawn = random.standard_normal((12, 999))
    one = random.standard_normal(12)
    one[3] = 9.0
    assert joint(one, drawn) < 0.05
    assert joint(np.full(12, 1.5), drawn) < 0.01
    assert joint(np.zeros(12), drawn) > 0.05


def test_attacks_on_other_people_and_older_records_are_corrected_by_their_number() -> None:
    drawn = np.random.default_rng(0).standard_normal(99)
    there = np.concatenate(([9.0], drawn))
    records = [
        record("syfer", "a", {"reid-auc": figure(0.6, there, p=0.01)}),
        record("syfer", "b", {"reid-auc": figure(0.5, exchanges=exchanges(there, "1" * 16), sides=1, p=0.01)}),
        record("syfer", "c", {"reid-auc": figure(0.45, p=0.002)}),
    ]
    found = combined(records)
    assert found is not None
    assert found.p == pytest.approx(3 * 0.01)
    assert "3 groups" in found.how
    alone = combined(records[2:])
    assert alone is not None
    assert alone.p == pytest.approx(1 - 0.002 / 2)  # worse than chance, in a record with two-sided p


def test_the_primary_figure_is_by_person_if_people_have_several_images() -> None:
    scores = {"reid-auc": figure(0.5), "patient-reid-auc": figure(0.6)}
    several = primary(record("syfer", "a", scores))
    one_each = {"public": 200, "private": 300, "control": 40, "test": 60}
    once = primary(record("syfer", "a", scores, dataset=dataset(subjects=one_each)))
    assert several is not None
    assert once is not None
    assert (several[0], once[0]) == ("patient-reid-auc", "reid-auc")


def test_a_bound_is_the_largest_upper_limit_and_names_its_makers() -> None:
    records = panel_of(relational=attack("relational", 0.55, learned=[CURVE]))
    found = bound(records, records)
    assert isinstance(found, Bound)
    assert 0.55 < found.area < 0.6
    assert found.attacks == len(CORE)
    assert found.sentence.startswith(
        f"ReID AUC by image at most {found.text} (95 %) by {len(CORE)} attacks that converged, profile same-image"
    )
    assert "5 keys; they name at most" in found.sentence


def test_a_gap_in_the_core_list_leaves_no_bound_and_says_which() -> None:
    stopped = LearningCurve("ReID AUC", ((0, 0.5),), converged=False, reason="its budget was spent")
    for name, changed, why in (
        ("relational", attack("relational", learned=[CURVE, stopped]), "relational did not converge"),
        ("moments", attack("moments", status="failed"), "moments failed"),
        ("leverage", attack("leverage", details={LEARNING: "all"}), "leverage has a malformed learning curve"),
    ):
        records = panel_of(**{name: changed})
        certified = [one for one in records if one.status == "ok"]
        found = bound(certified, records)
        assert isinstance(found, str)
        assert found.endswith(why)
    without = [one for one in panel_of() if one.attack and one.attack.name != "surrogate"]
    assert str(bound(without, without)).endswith("surrogate did not run")
    assert str(bound(panel_of()[1:], panel_of())).endswith("nearest-neighbour is not certified")


def test_a_variant_of_a_core_attack_does_not_take_its_place() -> None:
    """Its parameters could end it at once, on a plateau of its own making."""
    usual = attack("contrastive", learned=[CURVE])
    hasty = usual.model_copy(update={"evaluator": "reidentification-contrastive-least-1-"})
    records = panel_of(contrastive=hasty)
    assert str(bound(records, records)).endswith("contrastive did not run")


def test_an_attack_that_does_not_apply_is_no_gap() -> None:
    idle = attack("likelihood", status="not-applicable")
    records = panel_of(likelihood=idle)
    found = bound([one for one in records if one is not idle], records)
    assert isinstance(found, Bound)
    assert found.sentence.endswith("; without likelihood, which cannot read this release")


def test_a_bound_on_an_eve_who_knows_pairs_needs_the_attack_that_reads_them() -> None:
    records = [
        one.model_copy(update={"choice": {**one.choice, "eve": "known-pairs[k=5]"}})
        for one in (*panel_of(), attack("anchors"))
    ]
    found = bound(records[:-1], records[:-1])
    assert found == f"a bound needs the {len(CORE) + 1} attacks of the core list: anchors did not run"
    found = bound(records, records)
    assert isinstance(found, Bound)
    assert f"by {len(CORE) + 1} attacks that converged, profile known-pairs[k=5], 5 keys" in found.sentence


def test_a_learned_attack_applies_wherever_another_does() -> None:
    records = panel_of(moments=attack("moments", status="not-applicable"))
    assert str(bound([one for one in records if one.status == "ok"], records)).endswith("moments not applicable")


def test_every_attack_of_the_core_list_is_there() -> None:
    assert set(CORE) <= set(registry.entries("attacks"))


def test_power_is_the_leak_that_a_z_test_finds_four_times_in_five() -> None:
    figures = np.random.default_rng(0).standard_normal(100)
    one = [record("syfer", "a", {"reid-auc": figure(0.5, figures)})]
    assert power(one) == pytest.approx(0.5 + (1.6449 + 0.8416) * 0.01, abs=1e-5)
    more = power(one * 12)
    assert more is not None
    assert more == pytest.approx(0.5 + (2.6383 + 0.8416) * 0.01, abs=1e-5)
    old = power([record("syfer", "a", {"reid-auc": figure(0.5)})])  # from the interval of chance
    assert old == pytest.approx(0.5 + (1.6449 + 0.8416) * 0.02 / 1.95996, abs=1e-5)
    assert power([]) is None


def test_an_attack_is_surely_better_than_chance_after_correction_for_all_figures() -> None:
    def of(p: float, attacks: int) -> int:
        return len(surely([record("syfer", f"a{n}", {"reid-auc": figure(0.6, p=p, sides=1)}) for n in range(attacks)]))

    assert of(0.0004, 1) == 1
    assert of(0.0004, 2) == 0
    assert of(0.0002, 2) == 2
