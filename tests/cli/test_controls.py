"""Every attack can be held against the reference methods in the same run."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.commands import request

from bench.cli import main
from bench.evaluators.membership import Membership
from bench.evaluators.reidentification import Reidentification
from bench.results.records import Record
from bench.results.results import Results
from bench.runs.plan import controls, idle, work
from bench.runs.request import run_spec
from leaderboard.board import rows

ARGUMENTS = ["run", "--method", "dp-simple", "--dataset", "digits", "--preset", "smoke"]


def spec(*more: str) -> dict[str, list[str]]:
    """Method to evaluators, as planned."""
    planned = work(run_spec(request([*ARGUMENTS, *more])))
    return {cell.method.name: [evaluator.name for evaluator in found] for cell, found in planned.items()}


def test_the_references_are_one_method_of_each_role() -> None:
    assert sorted(str(found) for found in controls(Reidentification.controls, "smoke")) == [
        "hidden-control",
        "identity",
        "noise",
    ]
    assert sorted(str(found) for found in controls(Membership.controls, "smoke")) == ["constant", "over-fitted-cvae"]


def test_all_attacks_come_with_their_controls() -> None:
    found = spec("--attack", "all")
    assert set(spec()) == set(found) == {"dp-simple", "hidden-control", "identity", "noise"}
    assert all(name.startswith("reidentification-") for method in ("identity", "noise") for name in found[method])
    assert set(spec("--no-controls")) == {"dp-simple"}


def test_attacks_on_membership_come_with_features_or_by_name() -> None:
    references = {"over-fitted-cvae", "constant"}
    for more in (["--features", "pixels"], ["--attack", "dcr", "--controls"]):
        found = spec(*more)
        assert "membership-dcr" in found["dp-simple"]
        assert references <= set(found)
        assert all(name.startswith("membership-") for method in references for name in found[method])
    assert not any(name.startswith("membership-") for name in spec()["dp-simple"])


def test_chosen_attacks_come_with_their_controls_on_request() -> None:
    assert set(spec("--attack", "chance")) == {"dp-simple"}
    found = spec("--attack", "chance", "--controls")
    assert found["identity"] == found["noise"] == found["hidden-control"] == ["reidentification-chance"]
    assert "utility" in found["dp-simple"]


def test_without_an_attack_there_is_nothing_to_control() -> None:
    assert set(spec("--attack", "none", "--controls")) == {"dp-simple"}


def test_a_reference_that_was_asked_for_keeps_all_its_evaluators() -> None:
    assert "utility" in spec("--method", "noise", "--attack", "chance", "--controls")["noise"]


def test_a_run_with_controls_judges_its_attack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--attack", "nearest-neighbour", "--controls", "--metric", "guesswork", "--metric", "reid-auc"]
    assert main([*ARGUMENTS, *chosen, "--results", str(tmp_path)]) == 0
    records = [found for _, found in Results(tmp_path).records() if isinstance(found, Record)]
    assert {record.method.name: record.method.role for record in records} == {
        "dp-simple": None, "identity": "hides nothing", "noise": "keeps nothing",
        "hidden-control": "keeps nothing, in secret",
    }  # fmt: skip
    panels = {row.method: row.panel for row in rows(records)}
    (attack,) = panels["dp-simple"].members
    assert attack.standing == "certified"
    assert panels["dp-simple"].headline == "reidentification-nearest-neighbour"
    assert "nearest-neighbour ?" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--attack", "dcr", "--attack", "chance", "--metric", "guesswork"], ["dcr"]),
        (["--attack", "chance", "--metric", "utility-auc"], ["chance"]),
        (["--attack", "chance"], []),
        (["--attack", "all", "--metric", "guesswork"], []),
        (["--metric", "utility-auc"], []),
    ],
)
def test_an_attack_that_was_named_and_does_not_run_is_said(more: list[str], said: list[str]) -> None:
    assert idle(run_spec(request([*ARGUMENTS, *more]))) == said
