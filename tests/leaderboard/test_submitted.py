"""Bundles that others handed in stand on the board, but for what may not be shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made.current_records import current

from bench.cli import main
from bench.results.bundle import ENDING, pack
from bench.results.records import Record
from bench.results.results import Results
from leaderboard import published
from leaderboard.api import MANIFEST


def bundle(path: Path, *records: Record) -> None:
    results = Results(path.with_suffix(".folder"))
    for record in records:
        results.keep(record, {})
    files = {each.relative_to(results.root).as_posix(): each.read_bytes() for each in results.root.rglob("*.json")}
    path.parent.mkdir(parents=True, exist_ok=True)
    pack(path, files, "a test", None)


def test_what_may_be_shown_is_a_source_and_the_rest_is_refused_by_name(tmp_path: Path) -> None:
    speaks = current("dp-simple", details={"read": "/home/alice/scans/1"})
    bundle(tmp_path / f"mine{ENDING}", current(), current("noise", limit=3), speaks)
    (source,), refused = published.submitted(tmp_path)
    assert [found.method.name for _, found in source.records() if isinstance(found, Record)] == ["identity"]
    told = {name.split("/")[2].partition("--")[0]: reason for name, reason in refused}
    assert set(told) == {"noise", "dp-simple"}
    assert told["noise"] == "limited: made with --limit 3"
    assert "a path" in told["dp-simple"]


def test_a_bundle_that_was_altered_is_refused_whole(tmp_path: Path) -> None:
    path = tmp_path / f"mine{ENDING}"
    bundle(path, current())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    sources, ((name, reason),) = published.submitted(tmp_path)
    assert (sources, name) == ([], path.name)
    assert str(tmp_path) not in reason


def test_records_of_earlier_code_stay_on_the_board(tmp_path: Path) -> None:
    bundle(tmp_path / f"mine{ENDING}", current(inputs={"judge code": "of last year"}))
    sources, refused = published.submitted(tmp_path)
    assert (len(sources), refused) == (1, [])


def test_the_board_of_the_project_shows_published_records_and_bundles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Results(tmp_path / "results")
    own.keep(current(), {})
    folder = tmp_path / "published"
    published.publish(own, folder)
    bundle(tmp_path / f"submissions/theirs{ENDING}", current("noise"), current("blur", limit=3))
    problems, found = published.problems, published.submitted
    monkeypatch.setattr(published, "PUBLISHED", folder)
    monkeypatch.setattr(published, "problems", lambda results=None: problems(folder))
    monkeypatch.setattr(published, "submitted", lambda: found(tmp_path / "submissions"))
    assert main(["leaderboard", "build", "--site", str(tmp_path / "site")]) == 1
    assert "limited: made with --limit 3" in capsys.readouterr().err
    text = (tmp_path / "site" / MANIFEST).read_text()
    rows: Any = [line.strip() for line in text.splitlines() if '"method":' in line]
    assert sorted(rows) == ['"method": "identity",', '"method": "noise",']
    assert "unfit: limited: made with --limit 3" in text
    (tmp_path / f"submissions/theirs{ENDING}").unlink()
    assert main(["leaderboard", "build", "--site", str(tmp_path / "site")]) == 0


def test_an_installed_copy_says_where_the_published_records_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(published, "PUBLISHED", tmp_path / "nowhere")
    assert main(["leaderboard", "build", "--site", str(tmp_path / "site")]) == 2
    assert "name a results folder with --results" in capsys.readouterr().err
