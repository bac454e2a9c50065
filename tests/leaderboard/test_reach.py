from __future__ import annotations

import json
from pathlib import Path

import pytest
from made.board_records import dataset, guesswork, keyed, plugin, record, score

from bench.cli import main
from bench.results.records import Record
from bench.results.results import Results
from leaderboard import reach as module
from leaderboard.entries import beats_chance
from leaderboard.reach import reach, rungs, state, step, steps

IDENTITY = {"guesswork": guesswork(1).model_copy(update={"p": 0.0})}


def made(guesses: float, p: float | None, **more: object) -> Record:
    return record("identity", scores={"guesswork": guesswork(guesses).model_copy(update={"p": p})}, **more)


@pytest.fixture(autouse=True)
def nothing_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "shipped", lambda: ())


@pytest.mark.parametrize(
    ("guesses", "p", "expected"),
    [
        (1, 0.0, "broken"),
        (2.4, 0.0009, "broken"),  # its interval ends at 4.8
        (2.4, 0.002, "nothing shown"),
        (2.6, 0.0, "leaks"),
        (20, 0.0001, "leaks"),
        (90, 0.4, "nothing shown"),
    ],
)
def test_few_guesses_and_no_luck_are_a_break(guesses: float, p: float, expected: str) -> None:
    found = step(made(guesses, p))
    assert found is not None
    assert state(found) == expected


def test_among_few_images_a_break_takes_fewer_guesses() -> None:
    few = guesswork(1).model_copy(update={"p": 0.0, "null": 30.0})
    found = step(record("identity", scores={"guesswork": few}))
    assert found is not None
    assert state(found) == "leaks"  # its interval ends at 2, a fifteenth of what chance takes


def test_a_figure_that_is_better_for_the_owner_than_chance_beats_nothing() -> None:
    assert not beats_chance(guesswork(900).model_copy(update={"p": 0.0}))
    assert not beats_chance(score(0.3, null=0.5, null_low=0.48, null_high=0.52, p=0.0))
    assert beats_chance(score(0.7, null=0.5, null_low=0.48, null_high=0.52, p=0.0))


def test_only_encoders_of_the_ladder_without_a_limit_are_steps() -> None:
    others = [record("syfer", scores=IDENTITY), record("identity", "utility", kind="utility")]
    found = steps([made(1, 0.0), made(1, 0.0, limit=50), *others])
    assert [one.method.name for one in found] == ["identity"]


def test_a_parameter_that_a_method_has_gained_since_counts_as_its_default() -> None:
    earlier = {"keeps": "group", "scale": 0.02, "k": 10}  # without the pixels that only `keeps=pixels` reads
    told = record("known-leak", "reidentification-relational", parameters=earlier, attack=plugin("relational", {}))
    assert len(steps([told])) == 1
    other = record("known-leak", "reidentification-relational", parameters=earlier | {"k": 9}, attack=told.attack)
    assert steps([other]) == []
    unsaid = {"scale": 0.02, "k": 10}  # counts as keeps=length
    assert len(steps([record("known-leak", "reidentification-relational", parameters=unsaid, attack=told.attack)])) == 1


def test_an_encoder_with_other_parameters_is_no_rung() -> None:
    layers = record("random-layers", scores=IDENTITY, parameters={"depth": 2, "patch_size": 16})
    assert steps([layers]) == []


def test_the_same_data_come_before_other_data() -> None:
    here, there = made(80, 0.5), made(1, 0.0, dataset=dataset("nih"))
    found = reach(plugin("contrastive", {}), "quick", "synth-cxr", steps([there, here]))
    assert found[0].state == "nothing shown"
    assert reach(plugin("contrastive", {}), "quick", "elsewhere", steps([there]))[0].state == "broken"


def test_an_attack_that_does_not_apply_here_is_known_by_other_data() -> None:
    here = made(80, 0.5, dataset=dataset("table"))
    here = here.model_copy(update={"status": "not-applicable", "scores": {}})
    there = made(1, 0.0, dataset=dataset("nih"))
    found = reach(plugin("contrastive", {}), "quick", "table", steps([here, there]))[0]
    assert (found.state, found.tried) == ("broken", True)
    alone = reach(plugin("contrastive", {}), "quick", "table", steps([here]))[0]
    assert (alone.state, alone.tried) == ("not applicable", False)


def test_what_nobody_measured_is_said_to_be_so() -> None:
    found = reach(plugin("contrastive", {}), "quick", "synth-cxr", [])
    assert {rung.state for rung in found} == {"not measured"}
    assert tuple(rung.method for rung in found) == rungs()


def test_a_step_by_earlier_code_is_marked() -> None:
    old = plugin("contrastive", {}).model_copy(update={"code": "older"})
    found = reach(plugin("contrastive", {}), "quick", "synth-cxr", steps([made(1, 0.0, attack=old)]))
    assert found[0].stale


def test_failures_on_a_rung_are_no_breaks() -> None:
    failed = step(made(1, 0.0).model_copy(update={"status": "timed-out", "scores": {}}))
    assert failed is not None
    assert state(failed) == "failed"


def kept(folder: Path, found: Record, **more: str) -> None:
    """Keep a record of the ladder as the harness does."""
    Results(folder).keep(keyed(found, cell="synth-cxr/identity", **more), {})


def test_the_command_prints_the_ladder_and_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(tmp_path, made(1, 0.0))
    target = tmp_path / "reach.json"
    assert main(["reach", "--preset", "quick", "--results", str(tmp_path), "--write", str(target)]) == 0
    printed = capsys.readouterr().out
    assert "contrastive" in printed
    assert "broken" in printed
    assert "random-layers[depth=5]" in printed
    assert json.loads(target.read_text())[0]["method"]["name"] == "identity"


def test_the_command_shows_no_rung_of_other_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = record("random-layers", scores=IDENTITY, parameters={"depth": 1, "patch_size": 16})
    monkeypatch.setattr(module, "shipped", lambda: tuple(steps([layers])))
    kept(tmp_path, made(1, 0.0, dataset=dataset("nih")))
    assert main(["reach", "--preset", "quick", "--results", str(tmp_path)]) == 0
    nih, synth = capsys.readouterr().out.split("synth-cxr, preset")
    assert nih.count("broken") == synth.count("broken") == 1


def test_the_command_tells_attacks_of_one_name_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for base in ("leverage", "relational"):
        attack = plugin("surrogate", {"base": base, "rounds": 8})
        kept(tmp_path, made(1, 0.0, attack=attack), evaluator=f"reidentification-{base}")
    assert main(["reach", "--preset", "quick", "--results", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "base=leverage" in printed
    assert "base=relational" in printed
    assert "rounds=8" not in printed


def test_the_command_says_what_to_run_where_nothing_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reach", "--results", str(tmp_path)]) == 2
    assert "bench run --suite ladder" in capsys.readouterr().err


def leak(keeps: str, evaluator: str, guesses: float, **more: object) -> Record:
    """A record on a rung whose best attack is known."""
    return record(
        "known-leak", evaluator, {"guesswork": guesswork(guesses)},
        parameters={"keeps": keeps, "scale": 0.02, "k": 10, "pixels": 4, "places": "secret"}, **more,
    )  # fmt: skip


def test_a_reach_says_what_is_possible_where_that_is_known() -> None:
    stated = leak("noisy-scalar", "likelihood", 4, details={"density": "stated"})
    known = steps(
        [leak("length", "moments", 40), leak("nothing", "moments", 310), leak("noisy-scalar", "moments", 9), stated]
    )
    found = {rung.method: rung for rung in reach(plugin("moments", {}), "quick", "synth-cxr", known)}
    images = known[0].images
    length, nothing, noisy = (found[f"known-leak[keeps={kept}]"] for kept in ("length", "nothing", "noisy-scalar"))
    assert (length.attained, length.possible, length.breakable) == (40, 1.0, True)
    assert (nothing.possible, nothing.breakable) == ((images**2 + 1) / (images + 1), False)
    assert (noisy.attained, noisy.possible) == (9, 4)
    assert found["dauntless"].possible is None


def test_an_attack_that_had_to_measure_the_noise_says_nothing_of_what_is_possible() -> None:
    measured = leak("noisy-scalar", "likelihood", 4, details={"density": "measured"})
    found = reach(plugin("likelihood", {}), "quick", "synth-cxr", steps([measured]))
    assert next(rung for rung in found if "noisy" in rung.method).possible is None
