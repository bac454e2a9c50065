from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cli import main
from bench.cli.terminal import to_stdout

HEAVY = ("torch", "numpy", "pandas", "sklearn", "pydantic")


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from bench.cli import main; main(['--help']); "
    code += f"print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--method", "identity", "--size", "9999", "--dry-run"], "--size must be in [1, 8192], got 9999"),
        (["data", "prepare", "digits", "--size", "9999"], "--size must be in [1, 8192], got 9999"),
        (["audit", "--method", "blur", "--public", "none"], "an audit makes its inputs of public rows"),
        (["data", "info", "folder:a [b]"], "with double quotes around a path"),
    ],
)
def test_what_cannot_be_done_is_one_line_before_anything_starts(arguments, said, tmp_path, capsys) -> None:
    folder = ["--results", str(tmp_path)] if arguments[0] != "data" else []
    assert main([*arguments, *folder]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rnu"], 'bench: Unknown verb "rnu". Did you mean "run"?'),
        (["data", "lst"], 'bench data: Unknown verb "lst". Did you mean "list"?'),
        (["verify"], 'bench: Unknown verb "verify". Did you mean `bench data verify` or `bench leaderboard verify`?'),
        (["doctor"], 'bench: Unknown verb "doctor".'),
        (["run", "--methd", "x"], "bench run: Unknown option: --methd. Did you mean --method?"),
        (["data", "list", "--data-rot=x"], "bench data list: Unknown option: --data-rot. Did you mean --data-root?"),
        (["info", "a", "b"], "bench info: Unknown: b. `bench info --help` lists what it takes."),
        (["check"], "bench check: NAME is missing."),
        (["run", "--method"], "bench run: --method needs a value."),
        (
            ["reach", "--preset", "quick", "--preset", "paper"],
            "bench reach: Parameter --preset specified multiple times.",
        ),
        (["run", "--seed", "x"], "a seed must be a whole number, or a span such as 0-4, got 'x'"),
        (["run", "--jobs", "0"], "--jobs: expected greater than or equal to 1, got '0'"),
        (["run", "--timeout", "-1"], "--timeout: expected greater than 0, got '-1'"),
        (["run", "--timeout", "nan"], "--timeout: expected less than inf, got 'nan'"),
        (["run", "--overwrite", "nevr"], 'Did you mean "never"?'),
        (["list", "atacks"], 'Did you mean "attacks"?'),
        (["status", "--rows", "5"], "--rows goes with --cost, which is not given"),
        (["leaderboard", "verify", "--rerun", "0"], "--rerun goes with BUNDLE, which is not given"),
        (["leaderboard", "verify", "--seal", "--results", "x"], "--seal goes with BUNDLE, which is not given"),
        (["leaderboard", "serve", "--port", "65536"], "--port: expected less than or equal to 65535, got '65536'"),
        (["leaderboard", "serve", "--port", "-1"], "--port: expected greater than or equal to 0, got '-1'"),
        (["leaderboard", "serve", "--port", "²"], "--port: expected a valid integer, got '²'"),
        (["show", "--keys", "5", "--out", "x.png"], "bench show: Unknown option: --keys."),
        (["info", "gueswork"], "unknown plug-in 'gueswork'; did you mean 'guesswork'? `bench list` shows all"),
        (["run", "--method", "syfr"], "unknown method 'syfr'; did you mean 'syfer'?"),
        (["run", "--suite", "quikstart"], "unknown suite 'quikstart'; did you mean 'quickstart'?"),
    ],
)
def test_an_unknown_word_is_one_line_that_names_the_nearest(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--attack", "none", "--attack", "dcr"], "--attack none goes with no other attack: got dcr beside it"),
        (["--attack", "dcr", "--attack", "all"], "--attack all goes with no other attack: got dcr beside it"),
        (["--engine", "partition=gpu"], "--engine goes with --executor"),
        (["--executor", "slurm", "--engine", "partition"], "--engine: expected NAME=VALUE"),
        (["--sign", "."], "cannot read the signing key .: it is a folder"),
        (["--secret", "."], ". is no file: it must hold the secret"),
    ],
)
def test_a_dry_run_refuses_what_a_run_refuses(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["run", "--method", "identity", "--dataset", "digits", "--preset", "smoke"]
    for dry in ([], ["--dry-run"]):
        assert main([*run, *arguments, *dry]) == 2
        assert said in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--config", "nothere"],
        ["leaderboard", "verify", "nothere"],
        ["leaderboard", "verify", "--trusted", "nothere"],
        ["run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--secret", "nothere"],
        ["run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--sign", "nothere"],
        ["run", "--method", "./nothere.py:A"],
        ["keys", "new", "nothere/key"],
    ],
)
def test_a_file_that_is_not_there_is_said_once_and_in_words(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "[Errno" not in said
    assert 1 <= said.count("nothere") <= 2
    assert re.search("there is no|no such|is no file", said)
    assert not (tmp_path / "nothere").exists()


def test_letters_that_a_terminal_lacks_become_question_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(kept, encoding="ascii", write_through=True))
    assert main(["info", "cadp"]) == 0  # Tölle
    assert b"T?lle" in kept.getvalue()


def test_a_reader_that_goes_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        monkeypatch.setattr("sys.stdout", gone)
        assert main(["list", "attacks"]) == 0
        console = to_stdout()
        console.print("read by no one")
        print("nor is this", flush=True)


def test_a_folder_without_records_is_not_called_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "verify", "--results", str(tmp_path)]) == 2
    assert "no records in" in capsys.readouterr().err


def test_a_file_without_its_class_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    path.write_text("from pathlib import Path\nclass Other: pass\n")
    assert main(["check", str(path)]) == 2
    assert "name one, as FILE.py:CLASS" in capsys.readouterr().err
    assert main(["check", f"{path}:Mine"]) == 2
    assert "has no class 'Mine'; Known: Other\n" in capsys.readouterr().err


@pytest.mark.parametrize("group", ["methods", "attacks", "datasets", "metrics"])
def test_list_shows_every_plugin_as_ready(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", group]) == 0
    out = capsys.readouterr().out
    assert ("see `bench data list`" if group == "datasets" else "ready") in out
    assert "broken: " not in out


@pytest.mark.parametrize("name", ["dp-simple", "contrastive", "mimic", "guesswork"])
def test_info_names_parameters_and_paper(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", name]) == 0
    out = capsys.readouterr().out
    assert "parameters" in out
    assert "source: " in out


def test_list_and_info_say_what_a_metric_means(capsys: pytest.CaptureFixture[str]) -> None:
    told = ("Top-1", "share", "Privacy by image", "best-scored partner is the right one.", "1/n for n candidates")
    for arguments in (["list", "metrics"], ["info", "top-1"]):
        assert main(arguments) == 0
        out = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert [each for each in told if each not in out] == []
        assert "lower is better" in out or "better: lower" in out


def test_info_shows_what_is_chosen_in_brackets_and_refuses_what_cannot_be(capsys):
    assert main(["info", "dp-simple[scale=5]"]) == 0
    assert "    scale: float | None = 5.0 (else None)\n    epsilon: float | None = None\n" in capsys.readouterr().out
    assert main(["info", "cadp"]) == 0
    assert "    blocks: int = 2 (preset quick)\n" in capsys.readouterr().out
    assert main(["info", "dp-simple[scale=abc]"]) == 2
    assert "dp-simple[scale] must be float or none, got 'abc'" in capsys.readouterr().err


def test_a_seed_that_no_table_holds_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "--method", "blur", "--dataset", "digits", "--preset", "smoke", "--dry-run", "--seed"]
    assert main([*asked, str(2**63)]) == 2
    assert "a seed must be at most" in capsys.readouterr().err
