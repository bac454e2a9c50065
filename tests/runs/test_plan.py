"""How records stand against the code that is there, and which of them a run computes again."""

from __future__ import annotations

import py_compile
import sys
from pathlib import Path

import pytest
from made.cells import cell, place, records_of

from bench.api.running import slow_counting, slow_starts
from bench.cli import main
from bench.runs.plan import RUNS, Planned, standing, to_run
from bench.runs.run_spec import Overwrite
from bench.workbench import inputs

ARGUMENTS = ["--method", "identity", "--dataset", "digits", "--preset", "smoke", "--attack", "chance", "--jobs", "1",
             "--metric", "reid-auc", "--device", "cpu", "--no-site"]  # fmt: skip
PLANNED = Planned("throughput", None, ("throughput",))


def run(folder: Path, *more: str) -> int:
    return main(["run", *ARGUMENTS, "--results", str(folder), *more])


def test_records_of_earlier_code_stay_and_are_shown_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 0
    (before,) = records_of(tmp_path)
    digest = inputs.registered_digest
    monkeypatch.setattr(inputs, "registered_digest", lambda group, name: f"changed {digest(group, name)}")
    capsys.readouterr()
    for overwrite in ("never", "failed"):
        assert run(tmp_path, "--overwrite", overwrite) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "0 computed, 1 already there" in out
        assert "1 were computed by earlier code and stay; --overwrite stale computes them again" in out
    assert records_of(tmp_path) == [before]
    assert main(["status", "--results", str(tmp_path)]) == 1
    assert "stale" in capsys.readouterr().out
    assert run(tmp_path, "--overwrite", "stale") == 0
    assert "1 computed, 0 already there" in capsys.readouterr().out
    (after,) = records_of(tmp_path)
    assert after.key != before.key
    assert after.scores == before.scores


@pytest.mark.parametrize(
    ("overwrite", "runs"),
    [
        ("never", {"missing"}),
        ("failed", {"missing", "failed", "changed", "unreadable"}),
        ("stale", {"missing", "failed", "changed", "unreadable", "stale", "weaker"}),
        ("always", {"missing", "failed", "changed", "unreadable", "stale", "weaker", "done"}),
    ],
)
def test_never_means_never_and_each_word_adds_to_the_one_before(overwrite: Overwrite, runs: set[str]) -> None:
    assert RUNS[overwrite] == runs


def test_a_stronger_isolation_is_offered_and_all_three_callers_of_the_planner_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--isolation", "processes") == 0
    (before,) = records_of(tmp_path)
    for module in ("bench.runs.request", "bench.isolation"):  # bubblewrap was installed meanwhile
        monkeypatch.setattr(f"{module}.find_isolation", lambda wish: "sandbox")
    capsys.readouterr()
    assert run(tmp_path, "--dry-run") == 0
    forecast = " ".join(capsys.readouterr().out.split())
    assert "0 to run, 1 to keep" in forecast
    assert "weaker" in forecast
    assert main(["status", "--results", str(tmp_path)]) == 1
    assert "weaker" in capsys.readouterr().out
    assert run(tmp_path) == 0
    assert "1 were made with weaker isolation and stay" in " ".join(capsys.readouterr().out.split())
    assert records_of(tmp_path) == [before]
    assert run(tmp_path, "--dry-run", "--overwrite", "stale") == 0
    assert "1 to run, 0 to keep" in " ".join(capsys.readouterr().out.split())


def test_what_never_ran_is_missing(tmp_path: Path) -> None:
    found = standing(place(tmp_path).results, cell(), PLANNED, None, "none")
    assert (found.state, found.record) == ("missing", None)
    assert to_run(found, "never")


def test_a_file_that_is_no_record_is_not_overwritten_by_never(tmp_path: Path) -> None:
    results = place(tmp_path).results
    path = results.root / "cells" / cell().folder / "throughput.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 1}')
    found = standing(results, cell(), PLANNED, None, "none")
    assert found.state == "unreadable"
    assert "schema" in found.reason
    assert not to_run(found, "never")


def test_a_numba_that_cannot_be_imported_is_said_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.pairs.sweep._kernel", lambda: None)  # there, or there and broken
    (line,) = slow_counting()
    assert line.startswith("pair scores are counted by torch")


def test_a_torch_without_bytecode_is_said_before_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (source := tmp_path / "torch" / "__init__.py").parent.mkdir()
    source.touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert not [*slow_starts("sandbox")]  # the first process writes it
    for name, value in (("dont_write_bytecode", True), ("pycache_prefix", str(tmp_path / "unknown to rooms"))):
        with monkeypatch.context() as patch:
            patch.setattr(sys, name, value)
            (line,) = slow_starts("sandbox")
            assert line.endswith(f"compileall -q {tmp_path}")
            assert not [*slow_starts("none")]
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    py_compile.compile(str(source))
    assert not [*slow_starts("processes")]
