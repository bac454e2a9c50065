"""A suite may hold several parts, each a run of its own, and do without data that are not here."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.commands import request

from bench.cli import main
from bench.plugins.spec import UsageError
from bench.runs.request import SUITES, run_spec, run_specs
from bench.runs.run_spec import RunSpec

PARTS = """
preset: smoke
metrics: [reid-auc]
attacks: [chance]
parts:
  - {datasets: [digits], methods: [identity]}
  - {datasets: [diabetes], methods: [noise], metrics: [guesswork]}
"""


def planned(*arguments: str) -> tuple[RunSpec, ...]:
    return run_specs(request(["run", *arguments]))


def config(folder: Path, text: str = PARTS) -> str:
    path = folder / "run.yaml"
    path.write_text(text)
    return str(path)


def test_a_part_adds_to_what_the_file_says_of_all_and_wins_over_it(tmp_path: Path) -> None:
    first, second = planned("--config", config(tmp_path))
    assert [(str(spec.choices[0].dataset), spec.methods[0].name, spec.metrics) for spec in (first, second)] == [
        ("digits", "identity", ("reid-auc",)),
        ("diabetes", "noise", ("guesswork",)),
    ]
    assert first.preset == second.preset == "smoke"


def test_the_command_line_wins_over_every_part_and_equal_parts_run_once(tmp_path: Path) -> None:
    found = planned("--config", config(tmp_path), "--preset", "first-look", "--method", "blur")
    assert [spec.methods[0].name for spec in found] == ["blur", "blur"]
    assert {spec.preset for spec in found} == {"first-look"}
    alike = planned("--config", config(tmp_path), "--method", "blur", "--dataset", "digits", "--metric", "top-1")
    assert len(alike) == 1


def test_parts_share_some_of_a_list_by_an_anchor(tmp_path: Path) -> None:
    text = "datasets: [digits]\nparts: [{methods: [&two [identity, noise], mosaic]}, {methods: [*two, blur]}]"
    found = planned("--config", config(tmp_path, text))
    assert [[method.name for method in spec.methods] for spec in found] == [
        ["identity", "noise", "mosaic"],
        ["identity", "noise", "blur"],
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parts: [{methds: [identity]}]", "unknown option 'methds'"),
        ("parts: [{methods: [identity], parts: []}]", "unknown option 'parts'"),
        ("parts: []", "parts must be a list of mappings"),
        ("parts: {methods: [identity]}", "parts must be a list of mappings"),
        ("parts: [identity]", "a part must be a mapping of options, got 'identity'"),
        ("parts: [{datasets: [digits]}]", "no method given"),
        ("results: here", "unknown option 'results'; it is for the command line, as --results"),
        ("data_root: here", "it is for the command line, as --data-root"),
        ("data_roots: [here]", "or name the folder by --data-root"),
        ("method: identity", "did you mean 'methods'"),
        ("methods: identity", "expected a list, such as [identity], got 'identity'"),
    ],
)
def test_a_wrong_part_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    assert main(["run", "--config", config(tmp_path, text), "--dry-run", "--results", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


def test_two_files_with_parts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has parts, and so has the suite reference"):
        planned("--suite", "reference", "--config", config(tmp_path))


def test_a_dry_run_names_attacks_that_nothing_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "preset: smoke\ndatasets: [digits]\nmethods: [identity]\nattacks: [leverage]\nmetrics: [utility-auc]"
    assert main(["run", "--config", config(tmp_path, text), "--dry-run", "--results", str(tmp_path / "r")]) == 0
    assert "the attack leverage does not run" in capsys.readouterr().out


def test_a_file_in_the_place_of_a_suite_is_told_where_files_go() -> None:
    with pytest.raises(UsageError, match=r"unknown suite 'own.yaml'; a file is named by --config own.yaml"):
        planned("--suite", "own.yaml")
    with pytest.raises(UsageError, match="did you mean 'reference'"):
        planned("--suite", "referense")


def test_a_command_that_does_one_thing_refuses_parts(tmp_path: Path) -> None:
    told = ["show", "--config", config(tmp_path), "--out", str(tmp_path / "a.png")]
    with pytest.raises(UsageError, match="has 2 parts, and `bench show` does one"):
        run_spec(request(told))


@pytest.mark.parametrize("name", sorted(path.stem for path in SUITES.glob("*.yaml")))
def test_every_suite_names_what_there_is(name: str) -> None:
    assert all(spec.methods and spec.metrics for spec in planned("--suite", name))


def test_absent_data_are_named_once_and_the_rest_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "skip_absent: true\npreset: smoke\nattacks: [chance]\nmetrics: [reid-auc]\nmethods: [identity]\n"
        "parts: [{datasets: [mnist, digits]}, {datasets: [mnist]}, {datasets: [kermany-cxr], public: mnist}]\n"
    )
    told = ["run", "--config", config(tmp_path, text), "--data-root", str(tmp_path), "--results", str(tmp_path / "r")]
    assert main([*told, "--dry-run"]) == 0
    said = capsys.readouterr()
    assert said.err.count("left out mnist. mnist: expected") == 1
    assert said.err.count("left out kermany-cxr. ") == 1
    assert "1 to run, 0 to keep" in said.out
    assert main([*told, "--no-site"]) == 0
    assert "not run" not in capsys.readouterr().err


def test_a_run_whose_data_are_all_absent_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["run", "--method", "identity", "--dataset", "mnist", "--skip-absent", "--data-root", str(tmp_path)]
    assert main([*told, "--results", str(tmp_path / "r")]) == 2
    assert "none of the data sets is on this machine" in capsys.readouterr().err


def test_what_two_parts_share_is_run_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "preset: smoke\nmetrics: [reid-auc]\ndatasets: [digits]\nmethods: [identity]\n"
        "parts: [{attacks: [chance]}, {attacks: [chance, dcr, nearest-neighbour]}]\n"
    )
    told = ["run", "--config", config(tmp_path, text), "--results", str(tmp_path / "r")]
    assert main([*told, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "part 1 of 2: digits: 1 to run" in said
    assert "part 2 of 2: digits: 1 to run" in said
    assert main([*told, "--no-site"]) == 0
    assert main([*told, "--dry-run"]) == 0
    assert "0 to run, 2 to keep" in capsys.readouterr().out


def test_the_forecast_counts_a_job_that_two_parts_share_once(tmp_path: Path) -> None:
    from bench.api.running import open_place, plan

    def forecast(parts: str) -> float:
        text = (
            f"{{preset: smoke, attacks: [chance], metrics: [reid-auc], datasets: [digits], jobs: 1, parts: [{parts}]}}"
        )
        asked = request(["run", "--config", config(tmp_path, text)])
        return plan(asked, open_place(tmp_path / "results")).forecast.seconds

    shared = "{methods: [identity, noise]}"
    assert forecast(f"{shared}, {{methods: [noise]}}") == forecast(shared) > 0
