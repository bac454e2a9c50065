"""A run in which nothing is left says what it said before, without torch, and only while nothing has changed."""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from bench import cli
from bench.cli import remembered, scored_run
from bench.cli import settled as settled_run
from bench.cli.settled import Overheard, Settled, keep_settled, settled
from bench.runs.summary import Summary

RUN = (
    "run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--attack", "none",
    "--metric", "max-dispersion", "--isolation", "none", "--jobs", "1",
)  # fmt: skip


@pytest.fixture(autouse=True)
def every_run_looks_for_itself() -> None:
    """Not here."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command is given; its cache lies there too."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    monkeypatch.setattr("platformdirs.user_config_dir", lambda name: str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def said(folder: Path) -> Settled:
    """What a run said that has left records, pages and a secret."""
    for name in ("results/cells/a/b/c.json", "results/site/index.html", "results/artefacts/run-secret"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1")
    root = folder / "results"
    return Settled(
        lines=["a line"], printed="a table\n", records=str(root), secret=str(root / "artefacts" / "run-secret"),
        site=str(root / "site"), count=1, sources=[],
    )  # fmt: skip


def asked(*more: str) -> argparse.Namespace:
    return cli.parser().parse_args([*RUN, *more])


def keep(found: Settled, *more: str) -> None:
    """Keep what was said by a run that began and ended as things are now."""
    question = settled_run.asked(asked(*more))
    assert question is not None
    keep_settled(question, settled_run._stamps(asked(*more), found), found)


def test_what_was_said_is_said_again(said: Settled, capsys: pytest.CaptureFixture[str]) -> None:
    keep(said)
    assert settled(asked()) == said
    assert cli.main(RUN) == 0
    told = capsys.readouterr()
    assert told.out == f"a table\nRecords: {said.records}/cells\n0 computed, 1 already there, 0 failed; 0 s\n"
    assert told.err == "a line\n"


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "cells/a/b/c.json").write_text("2"),
        lambda root: (root / "cells/a/b/c.json").unlink(),
        lambda root: (root / "cells/a/b/d.json").write_text("1"),
        lambda root: (root / "artefacts/run-secret").write_text("2"),
        lambda root: (root / "artefacts/run-secret").unlink(),
        lambda root: (root / "site/index.html").write_text("22"),
        lambda root: (root / "site/index.html").unlink(),
        lambda root: os.utime(root / "site/index.html", (0, 0)),
    ],
)
def test_a_change_of_what_it_rests_on_has_the_run_look(said: Settled, change: Callable[[Path], object]) -> None:
    keep(said)
    change(Path(said.records))
    assert settled(asked()) is None


def test_artefacts_that_can_be_made_again_do_not_count(said: Settled) -> None:
    keep(said)
    (Path(said.records) / "artefacts" / "logs").mkdir()
    assert settled(asked()) is not None


@pytest.mark.parametrize("variable", ["BENCH_DATA", "BENCH_ISOLATION", "CUDA_VISIBLE_DEVICES", "NO_COLOR", "PATH"])
def test_the_surroundings_are_part_of_the_question(
    said: Settled, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(said)
    monkeypatch.setenv(variable, "other")
    assert settled(asked()) is None


def test_options_folder_code_and_configuration_are_part_of_the_question(
    said: Settled, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "run.yaml").write_text("seeds: [0]")
    keep(said, "--config", "run.yaml")
    assert settled(asked("--config", "run.yaml")) is not None
    assert settled(asked("--config", "run.yaml", "--seed", "1")) is None
    (folder / "run.yaml").write_text("seeds: [1]")
    assert settled(asked("--config", "run.yaml")) is None
    (folder / "run.yaml").write_text("seeds: [0]")
    with monkeypatch.context() as elsewhere:
        (folder / "other").mkdir()
        elsewhere.chdir(folder / "other")
        assert settled(asked("--config", "../run.yaml")) is None
    monkeypatch.setattr(remembered, "_state", lambda: "other code")
    assert settled(asked("--config", "run.yaml")) is None


def test_the_users_configuration_is_part_of_the_question(said: Settled, folder: Path) -> None:
    keep(said)
    (folder / "config").mkdir()
    (folder / "config" / "config.yaml").write_text("data_roots: [/somewhere]")
    assert settled(asked()) is None


@pytest.mark.parametrize("more", [["--dry-run"], ["--overwrite", "always"], ["--executor", "none"], ["--sign", "key"]])
def test_a_run_that_does_more_than_find_records_is_never_told_from_before(said: Settled, more: list[str]) -> None:
    assert settled_run.asked(asked(*more)) is None
    assert settled(asked(*more)) is None


def test_raw_data_are_asked_for_their_stamp(said: Settled, folder: Path) -> None:
    images = folder / "images"
    for name in ("a", "b"):
        (images / name).mkdir(parents=True)
        (images / name / "1.png").write_bytes(b"1")
    read = Settled(**{**vars(said), "sources": [("folder", {"path": str(images)})]})
    keep(read)
    assert settled(asked()) is not None
    (images / "a" / "1.png").write_bytes(b"22")
    assert settled(asked()) is None


@pytest.mark.parametrize("content", ["", "[]", '{"settled": {"lines": 1}}', '{"settled": {}, "rests on": ""}'])
def test_what_is_kept_and_no_answer_is_not_taken_for_it(content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.cli.settled.recalled", lambda question: content)
    assert settled(asked()) is None


def test_what_nobody_read_to_its_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    with Overheard() as heard:
        print("a table")
        assert heard.text == "a table\n"
        with pytest.raises(BrokenPipeError):
            sys.stdout.flush()
        print("the end of it, which goes nowhere")
    assert heard.text is None


def test_torch_is_not_imported_to_find_out() -> None:
    code = "import sys, bench.cli.commands.run; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_run_is_told_once_it_is_settled_and_measures_what_then_goes_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(RUN) == 0
    first = capsys.readouterr().out
    with monkeypatch.context() as idle:
        idle.setattr(scored_run, "perform", lambda *_: pytest.fail("the run looked for itself"))
        assert cli.main(RUN) == 0
    again = capsys.readouterr()
    assert again.out == f"{first.rsplit(chr(10), 2)[0]}\n0 computed, 1 already there, 0 failed; 0 s\n"
    assert "already there  digits | identity sets" in again.err
    (record,) = (folder / "results" / "cells").rglob("*.json")
    record.unlink()
    assert cli.main(RUN) == 0
    assert "1 computed, 0 already there" in capsys.readouterr().out


def test_a_run_with_a_plug_in_of_a_file_is_not_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom methods.identity import Identity\n\n\n"
        "@dataclass(frozen=True)\nclass Mine(Identity):\n    name = 'mine'\n"
    )
    command = [*RUN[:2], "./mine.py:Mine", *RUN[3:]]
    assert cli.main(command) == 0
    assert settled(cli.parser().parse_args(command)) is None


def test_a_configuration_that_changes_while_the_run_is_on_is_run_next_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who writes the next experiment into the file while the first is on gets both."""
    (folder / "run.yaml").write_text("seeds: [0]")
    run = scored_run.run

    def edited(*given: Any) -> Summary:
        (folder / "run.yaml").write_text("seeds: [1]")
        return run(*given)

    with monkeypatch.context() as slow:
        slow.setattr(scored_run, "run", edited)
        assert cli.main([*RUN, "--config", "run.yaml"]) == 0
    assert "1 computed, 0 already there" in capsys.readouterr().out
    assert cli.main([*RUN, "--config", "run.yaml"]) == 0
    assert "1 computed, 0 already there" in capsys.readouterr().out


def test_raw_data_that_change_while_the_run_is_on_are_looked_at_next_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(80):
        place = folder / "images" / "ab"[number % 2] / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (16, 16), number).save(place)
    command = [*RUN, "--size", "16"]
    command[command.index("digits")] = f"folder[path={folder / 'images'}]"
    run = scored_run.run

    def edited(*given: Any) -> Summary:
        found = run(*given)
        Image.new("L", (16, 16), 255).save(folder / "images" / "a" / "more.png")
        return found

    with monkeypatch.context() as slow:
        slow.setattr(scored_run, "run", edited)
        assert cli.main(command) == 0
    assert settled(cli.parser().parse_args(command)) is None
    cli.main([*command, "--overwrite", "stale"])
    assert settled(cli.parser().parse_args(command)) is None


@pytest.mark.parametrize("content", [b"seeds: [0]\n# \xff\n", b"seeds: ["])
def test_a_configuration_that_cannot_be_read_is_said(
    folder: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "run.yaml").write_bytes(content)
    assert cli.main([*RUN, "--config", "run.yaml"]) == 2
    assert "cannot read run.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["why_not", "cores"])
def test_what_the_machine_offers_is_part_of_the_question(
    said: Settled, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(said)
    monkeypatch.setattr(settled_run, name, lambda: "other")
    assert settled(asked()) is None
