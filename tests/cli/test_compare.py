"""`bench compare` says what is wrong with what it was asked, by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made.board_records import guesswork, record

from bench.cli import main
from bench.results.results import Results


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["identity", "identity"], "are the same row: name two different ones"),
        (["identity"], "name two methods, or none to compare all: got 1"),
        (["identity", "nothere"], "no record is of 'nothere'; there are identity, noise"),
        (["identity", "noise", "--attack", "nothere"], "no record is of an attack called 'nothere'"),
        (["identity", "noise", "--metric", "nothere"], "no record has a figure called 'nothere'"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: list[str], said: str
) -> None:
    for method in ("identity", "noise"):
        Results(tmp_path).keep(record(method, scores={"guesswork": guesswork(3.0)}, cell=f"digits/{method}"), {})
    assert main(["compare", "--results", str(tmp_path), *asked]) == 2
    assert said in capsys.readouterr().err


def test_a_row_that_is_written_whole_is_meant_before_those_with_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, parameters in (("a", {}), ("b", {"scale": 3.0}), ("c", {"scale": 3.0, "clip": 2.0})):
        made = record("stranger", scores={"guesswork": guesswork(3.0)}, parameters=parameters, cell=f"digits/{name}")
        Results(tmp_path).keep(made, {})
    main(["compare", "--results", str(tmp_path), "stranger", "stranger[scale=3]"])
    told = capsys.readouterr()
    assert "may be any of" not in told.err
    assert "not compared: Guesswork" in told.out
    assert main(["compare", "--results", str(tmp_path), "stranger", "stranger[clip=2]"]) == 1
    assert main(["compare", "--results", str(tmp_path), "stranger[scale=3.0]", "stranger[scale=3]"]) == 2


def test_figures_of_attacks_are_compared_as_json_with_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = ["--results", str(tmp_path / "results")]
    secret = tmp_path / "secret"  # the figures are the same in every run of the test
    secret.touch(mode=0o600)
    secret.write_bytes(bytes(range(32)))
    run = ["run", "--method", "identity", "--method", "noise", "--dataset", "digits", "--preset", "smoke", "--attack",
           "nearest-neighbour", "--no-controls", "--metric", "reid-auc", "--no-site", "--secret",
           str(secret), *results]  # fmt: skip
    assert main(run) == 0
    capsys.readouterr()
    assert main(["compare", "identity", "noise", "--format", "json", *results]) == 0
    told = json.loads(capsys.readouterr().out)
    (line,) = (one for one in told["comparisons"] if one.get("metric") == "reid-auc")
    assert line["reason"] == ""
    assert (line["attack"], line["first"], line["second"]) == ("nearest-neighbour", "identity", "noise")
    assert (line["keys"], line["ratio"], line["first value"]) == (2, False, 1.0)
    assert line["low"] < line["difference"] < line["high"]
    assert 0 < line["p"] <= 1
