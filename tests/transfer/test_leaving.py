"""What may not leave stays, unless its owner names the target; releases of it stay whatever is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.board_records import keyed
from made.moody_folder import crew
from made.results_folders import EVIDENCE, artefact, files, inputs, keep, one, restricted, whole

from bench.cli import main
from bench.results.results import Results
from bench.transfer.push import push
from bench.transfer.tally import Tally
from bench.transfer.target import Target


def sent(results: Results, folder: Path, *, named: bool = False) -> Tally:
    target = Target.open(str(folder))
    return push(results, target, crew(target), named=named, check=False, step=lambda *_: None)


@pytest.fixture
def mixed(tmp_path: Path) -> Results:
    results = Results(tmp_path / "mixed")
    keep(results, one(), restricted())
    for kind in ("schemes", "detectors", "releases"):
        artefact(results, kind, inputs(one(), of="open"))
        artefact(results, kind, inputs(restricted(), of="restricted"))
    return results


def test_restricted_data_stay_unless_their_owner_names_the_target(mixed: Results, tmp_path: Path) -> None:
    usual = sent(mixed, tmp_path / "t")
    assert usual.told("moved") == "1 detector, 1 record, 1 release, 1 scheme"
    assert usual.told("stays") == "1 detector, 1 record, 1 release, 1 scheme"
    assert b"mimic" not in b"".join(files(tmp_path / "t", ".").values())
    asked = sent(mixed, tmp_path / "t", named=True)
    assert asked.told("moved") == "1 detector, 1 record, 1 scheme"
    assert asked.told("stays") == "1 release"
    assert "never leaves" in asked.why("stays")[0]


def test_the_target_has_to_be_named_again_to_the_letter(mixed: Results, tmp_path: Path) -> None:
    told = ["push", str(tmp_path / "t"), "--results", str(mixed.root), "--restricted-to"]
    assert main([*told, str(tmp_path / "elsewhere")]) == 2
    assert not (tmp_path / "t").exists()
    assert main([*told, str(tmp_path / "t")]) == 0
    assert b"mimic" in b"".join(files(tmp_path / "t", "records").values())


def test_artefacts_of_data_that_nobody_speaks_of_stay(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    for kind in ("schemes", "releases"):
        artefact(results, kind, inputs(one()))
        artefact(results, kind, {"something": "else"})
    assert sent(results, tmp_path / "t").of("moved") == 0
    assert sent(results, tmp_path / "t", named=True).told("stays") == "2 releases"


def test_a_single_record_that_says_no_keeps_the_artefacts(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    data = one().dataset
    assert data is not None
    keep(results, one("yes"), one("no", dataset=data.model_copy(update={"shareable": False}), scores={}))
    artefact(results, "releases", inputs(one()))
    assert sent(results, tmp_path / "t", named=True).told("stays") == "1 release"


def test_pictures_evidence_and_words_of_restricted_data_never_leave(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    data = restricted().dataset
    keep(results, whole("p", dataset=data, scores={}), restricted("d", details={"seen": "a word"}))
    assert sent(results, tmp_path / "t", named=True).told("stays") == "2 records"
    assert EVIDENCE not in files(tmp_path / "t", ".").values()


def test_records_that_lie_about_known_data_stay(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    data = restricted().dataset
    assert data is not None
    open_data = data.model_copy(update={"shareable": True})
    lying = one("lie", dataset=open_data)
    chosen = {**lying.choice, "dataset": "mimic"}
    keep(results, keyed(lying, choice=chosen))
    artefact(results, "releases", inputs(lying))
    tally = sent(results, tmp_path / "t", named=True)
    assert tally.of("moved") == 0
    assert "may not be shared" in tally.why("stays")[0]


def test_paths_and_patients_keep_a_record_and_an_artefact_here(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    keep(results, one("a", details={"read": "/home/me/images"}), one("b", details={"who": "p10000032"}), one("c"))
    artefact(results, "schemes", inputs(one(), weights="/home/me/weights.pt"))
    tally = sent(results, tmp_path / "t", named=True)
    assert tally.told("stays") == "2 records, 1 scheme"
    assert tally.told("moved") == "1 record"


def test_nothing_but_what_is_known_is_looked_at(mixed: Results, tmp_path: Path) -> None:
    store = mixed.store.root
    artefact(mixed, "anything", inputs(one()))
    (store / "schemes" / ("0" * 32)).symlink_to(tmp_path)
    (mixed.root / "cells/synth-cxr/a/linked.json").symlink_to("/etc/passwd")
    (mixed.root / "prepared.npy").write_bytes(b"pixels")
    tally = sent(mixed, tmp_path / "t")
    assert tally.told("refused") == "1 record, 1 scheme"
    assert b"pixels" not in files(tmp_path / "t", ".").values()


def test_a_target_that_holds_other_things_is_refused(
    mixed: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letter.txt").write_text("dear")
    assert main(["push", str(tmp_path / "home"), "--results", str(mixed.root)]) == 2
    assert "a folder of its own" in capsys.readouterr().err
    assert main(["push", str(mixed.root / "inside"), "--results", str(mixed.root)]) == 2
    assert main(["push", "nowhere://x", "--results", str(mixed.root)]) == 2
