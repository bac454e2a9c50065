"""Data that may not leave stay: records, releases, words, secrets, logs and plans."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.board_records import keyed
from made.results_folders import (
    CARRIED,
    EVIDENCE,
    SECRET,
    artefact,
    files,
    folder,
    inputs,
    keep,
    one,
    restricted,
    whole,
)

from bench.cli import main
from bench.exchange.export import export
from bench.plugins.spec import UsageError
from bench.results.records import Record
from bench.results.results import Results


@pytest.fixture
def mixed(tmp_path: Path) -> Results:
    results = Results(tmp_path / "mixed")
    keep(results, one(), restricted())
    for kind in ("schemes", "detectors", "releases"):
        artefact(results, kind, inputs(one(), of="open"))
        artefact(results, kind, inputs(restricted(), of="restricted"))
    return results


def test_what_may_leave_arrives_whole_and_is_not_copied_again(tmp_path: Path) -> None:
    results, copy = folder(tmp_path / "r"), Results(tmp_path / "copy")
    first = export(results, copy.root)
    assert (first.count("copied"), first.count("refused"), first.count("stays")) == (9, 0, 0)
    assert files(copy.root, *CARRIED) == files(results.root, *CARRIED)
    assert not list(copy.problems())
    again = export(results, copy.root)
    assert (again.count("present"), again.count("copied")) == (9, 0)


def test_secret_logs_and_plans_never_leave(tmp_path: Path) -> None:
    export(folder(tmp_path / "r"), tmp_path / "copy", restricted=True)
    everything = b"".join(files(tmp_path / "copy", ".").values())
    for private in (SECRET.content, SECRET.content.hex().encode(), b"patient", b"evaluators: []"):
        assert private not in everything
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {"cells", "artefacts"}
    assert {path.name for path in (tmp_path / "copy/artefacts").iterdir()} == {"schemes", "detectors"}


def test_restricted_data_stay_unless_their_owner_says_so(mixed: Results, tmp_path: Path) -> None:
    usual = export(mixed, tmp_path / "copy")
    assert usual.summary("copied") == "1 detector, 1 record, 1 release, 1 scheme"
    assert usual.summary("stays") == "1 detector, 1 record, 1 release, 1 scheme"
    assert b"mimic" not in b"".join(files(tmp_path / "copy", ".").values())
    named = export(mixed, tmp_path / "copy", restricted=True)
    assert named.summary("copied") == "1 detector, 1 record, 1 scheme"
    assert named.summary("stays") == "1 release"
    assert "never leaves" in named.reasons("stays")[0]


def test_the_newer_of_two_records_is_exported(tmp_path: Path) -> None:
    results, copy = Results(tmp_path / "r"), Results(tmp_path / "copy")
    for created in ("2025-01-01T00:00:00Z", "2025-06-01T00:00:00Z"):
        keep(results, one(created=created))
        assert export(results, copy.root).summary("copied") == "1 record"
    (record,) = (record for _, record in copy.records())
    assert isinstance(record, Record)
    assert record.created == "2025-06-01T00:00:00Z"


def test_artefacts_of_unknown_data_stay(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    for kind in ("schemes", "releases"):
        artefact(results, kind, inputs(one()))
        artefact(results, kind, {"something": "else"})
    assert export(results, tmp_path / "copy").count("copied") == 0
    assert export(results, tmp_path / "copy", restricted=True).summary("stays") == "2 releases"


def test_a_single_record_that_says_no_keeps_records_and_artefacts_of_its_data(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    data = one().dataset
    assert data is not None
    closed = one("no", dataset=data.model_copy(update={"shareable": False}), scores={})
    keep(results, closed, one("yes"))
    artefact(results, "releases", inputs(one()))
    assert export(results, tmp_path / "copy").summary("stays") == "2 records, 1 release"
    assert export(results, tmp_path / "copy", restricted=True).summary("stays") == "1 release"


def test_pictures_evidence_and_words_of_restricted_data_never_leave(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    data = restricted().dataset
    keep(results, whole("p", dataset=data, scores={}), restricted("d", details={"seen": "a word"}))
    assert export(results, tmp_path / "copy", restricted=True).summary("stays") == "2 records"
    assert EVIDENCE not in files(tmp_path / "copy", ".").values()


def test_records_that_lie_about_known_data_stay(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    data = restricted().dataset
    assert data is not None
    lying = one("lie", dataset=data.model_copy(update={"shareable": True}))
    keep(results, keyed(lying, choice={**lying.choice, "dataset": "mimic"}))
    artefact(results, "releases", inputs(lying))
    outcomes = export(results, tmp_path / "copy", restricted=True)
    assert outcomes.count("copied") == 0
    assert "may not be shared" in outcomes.reasons("stays")[0]


def test_paths_and_patients_keep_a_record_and_an_artefact_here(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    keep(results, one("a", details={"read": "/home/me/images"}), one("b", details={"who": "p10000032"}), one("c"))
    artefact(results, "schemes", inputs(one(), weights="/home/me/weights.pt"))
    outcomes = export(results, tmp_path / "copy", restricted=True)
    assert outcomes.summary("stays") == "2 records, 1 scheme"
    assert outcomes.summary("copied") == "1 record"


def test_links_and_unknown_files_are_not_followed_or_copied(mixed: Results, tmp_path: Path) -> None:
    artefact(mixed, "anything", inputs(one()))
    (mixed.store.root / "schemes" / ("0" * 32)).symlink_to(tmp_path)
    (mixed.root / "cells/synth-cxr/a/linked.json").symlink_to("/etc/passwd")
    (mixed.root / "prepared.npy").write_bytes(b"pixels")
    assert export(mixed, tmp_path / "copy").summary("refused") == "1 record, 1 scheme"
    assert b"pixels" not in files(tmp_path / "copy", ".").values()


@pytest.mark.parametrize("name", ["letter.txt", "artefacts/run-secret", "artefacts/logs/a.log"])
def test_a_folder_that_holds_other_things_is_refused(name: str, mixed: Results, tmp_path: Path) -> None:
    (tmp_path / "home" / name).parent.mkdir(parents=True)
    (tmp_path / "home" / name).write_text("dear")
    with pytest.raises(UsageError, match="holds other things"):
        export(mixed, tmp_path / "home")


def test_nothing_is_written_through_a_link(mixed: Results, tmp_path: Path) -> None:
    (tmp_path / "copy/cells").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "copy/cells/synth-cxr").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="links"):
        export(mixed, tmp_path / "copy")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_the_command_line_exports(mixed: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["leaderboard", "export", "--results", str(mixed.root)]
    assert main([*told, str(mixed.root / "inside")]) == 2
    assert main(["leaderboard", "export", "--results", str(tmp_path / "nowhere"), str(tmp_path / "copy")]) == 2
    capsys.readouterr()
    assert main([*told, str(tmp_path / "copy")]) == 0
    printed = capsys.readouterr()
    assert "1 detector, 1 record, 1 release, 1 scheme; there before: nothing" in printed.out
    assert "stays: artefacts/releases" in printed.err
    assert main([*told, str(tmp_path / "copy"), "--restricted"]) == 0
    assert b"mimic" in b"".join(files(tmp_path / "copy", "cells").values())
