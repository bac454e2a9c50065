"""`bench new release-folder` and `bench check imported[path=FOLDER]`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.cli import main


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["new", "release-folder", "my-release"]) == 0
    return tmp_path / "my-release"


def test_the_example_satisfies_the_check_as_it_is_written(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "imported[path=my-release]", "--dataset", "digits"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for part in ("240 images of 8 pixels a side", "240 raw rows, and 1557 others of digits", "not audited", "FOLDER/"):
        assert part in said
    assert "Next: bench run --method 'imported[path=my-release]' --dataset digits" in said
    assert "failed" not in said.replace("0 failed", "")


def test_without_a_data_set_raw_rows_are_left_unchecked(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "imported[path=my-release]"]) == 0
    assert "name the data set by --dataset NAME" in " ".join(capsys.readouterr().out.split())


def test_a_fault_fails_the_check_with_its_line(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (example / "links.csv").open("a") as table:
        table.write("images/000.png,9999\n")
    assert main(["check", "imported[path=my-release]", "--dataset", "digits"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "links.csv: line 242: there are 1797 rows of digits, numbered from 0, and this is beyond them" in said


def test_a_folder_that_exists_is_not_overwritten(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (example / "links.csv").stat().st_mtime_ns
    assert main(["new", "release-folder", "my-release"]) == 2
    assert (example / "links.csv").stat().st_mtime_ns == before
    assert main(["new", "release-folder", "../other"]) == 2
    assert "a folder's name must be of a-z" in capsys.readouterr().err


def test_the_raw_rows_of_a_plug_in_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "identity", "--dataset", "digits"]) == 2
    assert "--dataset names the raw rows of a release by another tool" in capsys.readouterr().err


def test_the_method_without_a_folder_shows_the_layout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "imported"]) == 0
    assert "members.csv" in capsys.readouterr().out


def test_a_missing_folder_or_a_link_out_of_it_is_one_error(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "imported[path=nowhere]"]) == 2
    assert "path must name a folder of released rows" in capsys.readouterr().err
    (example / "more.png").symlink_to(os.devnull)
    assert main(["check", "imported[path=my-release]"]) == 2
    assert "a link that leads out of it" in capsys.readouterr().err
