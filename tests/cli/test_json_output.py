"""What scripts read: one JSON object a command, and JUnit XML of checks."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from test_exit_codes import FAILING

from bench.api import running
from bench.cli import main
from bench.cli.junit import write_junit
from bench.cli.terminal import print_json
from bench.conformance.isolated_check import PluginCheck

DOCUMENTED = (Path(__file__).parents[2] / "docs" / "how-to" / "use-in-scripts.md").read_text(encoding="utf-8")
RUN = ["run", "--dataset", "digits", "--preset", "smoke", "--attack", "none", "--metric", "max-dispersion", "--no-site"]


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, list[dict[str, object]]]:
    assert main([*words, "--format", "json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert list(found) == sorted(found)
    row = next(line for line in DOCUMENTED.splitlines() if line.startswith(f"| `{words[0]}") or
               line.startswith(f"| `{' '.join(words[:2])}"))  # fmt: skip
    assert [name for name in found if f"`{name}`" not in row] == [], "of the documented shape"
    for lines in found.values():
        for line in lines if isinstance(lines, list) else []:
            if isinstance(line, dict):
                assert [name for name in line if f"`{name}`" not in row] == [], "of the documented shape"
    return found


def test_lists_and_descriptions(capsys: pytest.CaptureFixture[str]) -> None:
    listed = printed(capsys, "list", "methods")["plugins"]
    assert {"syfer", "blur"} <= {str(one["name"]) for one in listed}
    (blur,) = printed(capsys, "info", "blur[sigma=3]")["plugins"]
    assert [one["value"] for one in blur["parameters"] if one["name"] == "sigma"] == ["3.0"]  # type: ignore[attr-defined]
    assert "sigma: float = 3.0 (else 2.0)" in running.info("blur[sigma=3]")


def test_without_a_name_this_machine_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_DATA", str(tmp_path))
    monkeypatch.setenv("BENCH_ISOLATION", "processes")
    machine = printed(capsys, "info")["machine"]
    assert isinstance(machine, dict)
    assert machine["data_roots"] == [str(tmp_path.resolve())]
    assert machine["isolation"] == "processes"
    assert machine["jobs"] >= 1
    assert machine["memory_of_a_job_gib"] > 0
    assert main(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"data roots: {tmp_path.resolve()}" in lines
    assert "isolation: processes" in lines


def test_jobs_comparisons_and_altered_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = ["--results", str(tmp_path / "results")]
    assert main([*RUN, "--method", "blur", "--method", "mosaic", *results]) == 0
    capsys.readouterr()
    found = printed(capsys, "status", *results)
    assert found["counts"] == {"done": 2}
    assert {job["state"] for job in found["jobs"]} == {"done"}
    compared = printed(capsys, "compare", "blur", "mosaic", *results, code=1)
    assert [line["reason"] != "" for line in compared["comparisons"]] == [True]
    assert printed(capsys, "leaderboard", "verify", *results)["altered"] == []
    (record,) = (tmp_path / "results" / "cells" / "digits").glob("blur*/*.json")
    record.write_text(record.read_text().replace('"blur"', '"blue"'))
    (altered,) = printed(capsys, "leaderboard", "verify", *results, code=1)["altered"]
    assert str(altered["file"]).endswith(record.name)


def test_checks_as_json_and_junit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    name, file = f"{tmp_path}/failing.py:Failing", tmp_path / "checks.xml"
    found = printed(capsys, "check", name, "--junit", str(file), code=1)
    failed = [one for one in found["checks"] if one["status"] == "failed"]
    assert found["failed"] == len(failed) > 0
    (suite,) = ElementTree.parse(file).getroot()
    assert int(suite.get("failures", "")) == len(failed)
    assert int(suite.get("tests", "")) == len(found["checks"]) == len(suite)
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "no scheme" in failure.get("message", "") + str(failure.text)


def test_junit_holds_any_text(tmp_path: Path) -> None:
    wild = PluginCheck("methods", "a & b", "failed", "<x> \x1b[31m \x00", "mine.py:3", "line 1\nline <2> \x0c", 1.5)
    skipped = PluginCheck("methods", "c", "not-reached", "because", "", "", 0.0)
    noted = PluginCheck("methods", "d", "noted", "mind", "", "", 0.0)
    write_junit(tmp_path / "j.xml", {"mine.py:Mine": [wild, skipped, noted]})
    (suite,) = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("failures"), suite.get("skipped"), suite.get("tests")) == ("1", "1", "3")
    assert "line <2>" in str(suite[0][0].text)
    assert suite[2].findtext("system-out") == "mind"


def test_numbers_that_json_has_not_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(value=math.inf, inner=[{"x": math.nan}, 1.5])
    assert json.loads(capsys.readouterr().out) == {"value": None, "inner": [{"x": None}, 1.5]}
