"""A plug-in at work in one process: prints, breakpoints, debuggers and profiles reach it."""

from __future__ import annotations

import io
import pstats
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cli import main

MINE = """
from dataclasses import dataclass
from typing import ClassVar

from bench.types import Keyless


@dataclass(frozen=True)
class Mine(Keyless):
    \"\"\"Halves.\"\"\"

    name: ClassVar[str] = "mine"
    source: ClassVar[str] = "a test"

    def transform(self, samples):
        half = samples / 2
        HERE
        return half
"""


def plug_in(folder: Path, here: str) -> str:
    (folder / "mine.py").write_text(MINE.replace("HERE", here))
    return f"{folder / 'mine.py'}:Mine"


def test_a_method_is_fitted_released_queried_and_attacked_and_its_prints_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["debug", plug_in(tmp_path, 'print("I was here", half.shape)'), "--metric", "reid-auc"]) == 0
    out = capsys.readouterr().out
    assert "I was here torch.Size([160, 1, 8, 8])" in out
    steps = [line.partition(":")[0] for line in out.splitlines() if ": " in line]
    assert [step for step in steps if step in ("data", "fit", "release", "query", "attack")] == [
        "data", "fit", "release", "query", "attack"
    ]  # fmt: skip
    assert "reid-auc 1.000" in out


def test_the_reason_for_a_missing_figure_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["debug", plug_in(tmp_path, "pass"), "--metric", "patient-guesswork"]) == 0
    out, err = capsys.readouterr()
    assert err.count("no figure of patient-guesswork: ") == 1
    assert "patient-guesswork" not in out


def test_an_attack_is_tried_on_a_method(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attack = tmp_path / "lines.py"
    assert main(["new", "attack", "lines-of", "--into", str(tmp_path)]) == 0
    assert main(["debug", f"{tmp_path}/lines_of.py:LinesOf", "--method", "noise", "--metric", "reid-auc"]) == 0
    assert "lines_of.py:LinesOf on noise, digits:" in capsys.readouterr().out
    assert not attack.exists()


def test_a_breakpoint_opens_the_debugger_and_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "debug", plug_in(tmp_path, "breakpoint()"), "--metric", "top-1"]
    done = subprocess.run(command, input="p half.max()\n" + 50 * "c\n", capture_output=True, text=True, check=False)
    assert "(Pdb) tensor(0.5" in done.stdout, done.stderr
    assert done.returncode == 0
    assert "top-1 1.000" in done.stdout


def test_an_exception_opens_the_debugger_where_it_was_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("p half.shape[0]\nq\n"))
    assert main(["debug", plug_in(tmp_path, 'raise KeyError("mine")'), "--pdb"]) == 1
    out, err = capsys.readouterr()
    assert "(Pdb) 160" in out
    assert "KeyError: 'mine'" in err


def test_leaving_the_debugger_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
    monkeypatch.setattr("sys.breakpointhook", sys.__breakpointhook__)  # not that of pytest, which would end the tests
    assert main(["debug", plug_in(tmp_path, "breakpoint()")]) == 1


def test_a_profile_holds_the_plug_in(tmp_path: Path) -> None:
    file = tmp_path / "mine.pstats"
    assert main(["debug", plug_in(tmp_path, "pass"), "--metric", "top-1", "--profile", str(file)]) == 0
    names = {name for _, _, name in pstats.Stats(str(file)).stats}  # type: ignore[attr-defined]
    assert "transform" in names


@pytest.mark.parametrize("isolation", ["none", "processes"])
def test_a_breakpoint_in_a_run_says_what_to_use_instead(
    isolation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--dataset", "digits", "--preset", "smoke", "--metric", "max-dispersion", "--attack", "none", "--no-site"]
    method = plug_in(tmp_path, "breakpoint()")
    assert main(["run", "--method", method, *words, "--isolation", isolation, "--results", str(tmp_path / "r")]) == 1
    assert "`bench debug` runs a plug-in with one" in capsys.readouterr().err


def test_a_check_names_the_debugger_and_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    method = plug_in(tmp_path, "raise KeyError(samples.ndim)")
    monkeypatch.setattr("sys.stdin", io.StringIO(20 * "p samples.ndim\nq\n"))
    assert main(["check", method, "--pdb"]) == 1
    assert "(Pdb) 4" in capsys.readouterr().out
    plug_in(tmp_path, "breakpoint()")
    assert main(["check", method]) == 1
    assert "`bench debug` runs a plug-in with one" in capsys.readouterr().err
