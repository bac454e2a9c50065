from __future__ import annotations

import pytest
from pydantic import JsonValue

from bench.cli import main
from bench.plugins.configured import configure
from bench.plugins.spec import parameters
from bench.results.record_parts import ScoreRecord
from leaderboard.reach import Step, reach, rungs, shipped

EARLIER = {"contrastive", "contrastive-labels", "moments", "surrogate"}
"""Attacks whose steps are of sizes that they had before they trained to a plateau: they lack the rung of raw pixels."""
KNOWN = [rung for rung in rungs() if rung.startswith("known-leak")]


def _today(one: Step) -> dict[str, JsonValue]:
    """The parameters that the attack has now at the step's preset."""
    plugin = configure("attacks", one.attack.name, one.preset).plugin
    return dict(parameters(plugin))


def test_what_is_shipped_covers_the_ladder_for_every_attack_in_it() -> None:
    attacks = {one.attack.name: one for one in shipped()}
    assert {"invariants", "likelihood", "relational", "contrastive"} <= attacks.keys()
    for one in attacks.values():
        found = {rung.method: rung for rung in reach(one.attack, one.preset, one.dataset, shipped())}
        assert found["identity"].step is not None
        missing = [name for name in KNOWN if found[name].step is None]
        assert (one.attack.parameters != _today(one)) == (one.attack.name in EARLIER)
        if one.attack.name in EARLIER:
            missing = [name for name in missing if name != "known-leak[keeps=pixels]"]
        assert not missing, f"{one.attack.name} was not measured on {missing}, whose best attack is known"


def test_no_attack_beats_the_best_that_there_can_be_and_each_known_answer_is_attained() -> None:
    attained: dict[str, list[tuple[float, ScoreRecord]]] = {}
    for one in {one.attack.name: one for one in shipped()}.values():
        for rung in reach(one.attack, one.preset, one.dataset, shipped()):
            if rung.method in KNOWN and rung.possible is not None and rung.attained is not None:
                assert rung.step is not None
                attained.setdefault(rung.method, []).append((rung.possible, rung.step.scores["guesswork"]))
    pad = attained.pop("known-leak[keeps=nothing]")
    assert min(score.p for _, score in pad if score.p is not None) * len(pad) > 0.01  # of so many one is low by chance
    for found in attained.values():
        assert all(score.high is None or score.high >= possible for possible, score in found)
    best = {rung: min(score.value for _, score in found) for rung, found in attained.items()}
    assert best["known-leak[keeps=scalar]"] == 1.0
    assert best["known-leak[keeps=length]"] == 1.0


def test_the_ladder_is_shown_before_anything_was_run(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reach", "--results", str(tmp_path), "--preset", "first-look"]) == 0
    assert "relational" in capsys.readouterr().out
