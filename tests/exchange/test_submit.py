"""What may not be handed in is named, with what to do; what may is packed to the same bytes each time."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from made import submissions
from made.board_records import dataset, guesswork, keyed, record
from made.submissions import Handed

from bench.cli import main
from bench.exchange.check import check
from bench.exchange.submit import lock, submit
from bench.results import verdict
from bench.results.bundle import Bundle
from bench.results.reason import UNSAID
from bench.results.records import Record
from bench.results.results import Results
from bench.results.signing_key import SigningKey, make_pair
from bench.results.verdict import Tier
from bench.workbench.inputs import PROTOCOL


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.exchange.check.required", submissions.few)


def findings(folder: Path, *records: Record) -> dict[str, str]:
    results = Results(folder)
    for each in records:
        results.keep(each, {})
    return {finding.kind: finding.reason for finding in check(results).findings}


def made(**more: Any) -> Record:
    scores = {"guesswork": more.pop("score", guesswork(2))}
    return record("dp-simple", "contrastive", scores, cell=more.pop("cell", "d/c"), **more)


def test_the_same_folder_packs_to_the_same_bytes(handed: Handed, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    assert submit(handed.results, again, disclose=True) == (again, ())
    assert Bundle.open(again).sha256 == handed.bundle.sha256
    assert {"environment.json", "requirements.lock", "cell-secrets.json"} < {*handed.bundle.files}


def test_the_secret_stays_at_home_unless_it_is_disclosed(handed: Handed, tmp_path: Path) -> None:
    key, _ = make_pair(tmp_path / "key")
    assert submit(handed.results, tmp_path / "a.zip", signer=key) == (tmp_path / "a.zip", ())
    bundle = Bundle.open(tmp_path / "a.zip")
    assert bundle.secret is None
    assert bundle.secrets == {}
    assert bundle.signer == key.public
    assert handed.results.keep_secret().root.content not in (tmp_path / "a.zip").read_bytes()


def test_the_lock_file_names_every_package_at_its_version() -> None:
    lines = lock().splitlines()
    assert any(line.startswith("torch==") for line in lines)
    names = [line.partition("==")[0].lower() for line in lines]
    assert names == sorted(set(names))


@pytest.mark.usefixtures("few")
def test_limited_records_are_refused_by_name(tmp_path: Path) -> None:
    found = findings(tmp_path, made(limit=20))
    assert "--limit 20" in found["limited"]


@pytest.mark.usefixtures("few")
def test_records_of_two_environments_are_refused_by_name(tmp_path: Path) -> None:
    found = findings(tmp_path, made(versions={"torch": "2.11"}), made(cell="d/e", versions={"torch": "2.12"}))
    assert "torch 2.12 and 2.11" in found["mixed"]


@pytest.mark.usefixtures("few")
def test_altered_records_are_refused_by_name(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.keep(made(), {})
    path = next(tmp_path.glob("cells/*/*/*.json"))
    path.write_text(path.read_text().replace('"value": 2', '"value": 9'))
    (finding,) = (each for each in check(results).findings if each.kind == "altered")
    assert "its digest is" in finding.reason
    assert finding.name == path.relative_to(tmp_path).as_posix()


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"details": {"nearest": "row 7"}}, "holds details"),
        ({"threat_model": {"eve": "knows"}}, "holds threat model"),
        ({"scheme": {"note": 1}}, "holds scheme"),
        ({"score": guesswork(2).model_copy(update={"note": "row 7"})}, "a note, replicates or exchanges"),
    ],
)
def test_words_of_restricted_data_are_refused(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    quiet = {"score": guesswork(2).model_copy(update={"note": UNSAID}), "threat_model": {}, "details": {}}
    found = findings(tmp_path, made(dataset=dataset("mimic", shareable=False), **(quiet | more)))
    assert said in found["restricted"]


@pytest.mark.usefixtures("few")
def test_restricted_data_that_call_themselves_shareable_are_refused(tmp_path: Path) -> None:
    shown = made()
    choice = {**shown.choice, "dataset": "mimic"}
    found = findings(tmp_path, keyed(shown, choice=choice))
    assert "may not be shared, and the record says that it may" in found["restricted"]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("name", ["resampled", "tails"])
def test_a_path_is_found_below_the_name_of_numbers(name: str, tmp_path: Path) -> None:
    assert "an address" in findings(tmp_path, made(details={name: "/home/me/scans/a.png"}))["path"]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("word", "kind"), [("p10000032", "restricted"), ("/home/me/scans/a.png", "path"), ("C:\\scans", "path")]
)
def test_paths_and_patients_are_refused(tmp_path: Path, word: str, kind: str) -> None:
    assert kind in findings(tmp_path, made(details={"read": f"from {word}"}))


@pytest.mark.usefixtures("few")
def test_plugins_in_files_and_open_processes_are_named(tmp_path: Path) -> None:
    method = made().method.model_copy(update={"written": "mine.py:Mine"})
    found = findings(tmp_path, keyed(made(isolation="none"), method=method))
    assert "bench new package" in found["file"]
    assert "without --isolation none" in found["unprotected"]


@pytest.mark.usefixtures("few")
def test_the_secret_is_never_disclosed_with_restricted_data(tmp_path: Path) -> None:
    results = Results(tmp_path / "r")
    results.keep(made(dataset=dataset("mimic", shareable=False)), {})
    _, found = submit(results, tmp_path / "a.zip", disclose=True)
    assert any("leave --disclose out" in finding.reason for finding in found)
    assert not (tmp_path / "a.zip").exists()


def test_controls_alone_are_no_submission(handed: Handed, tmp_path: Path) -> None:
    """What a run leaves that was cut off before it came to the method."""
    left = tmp_path / "left"
    shutil.copytree(handed.results.root, left)
    for cell in (left / "cells").rglob(f"{submissions.METHOD}*"):
        shutil.rmtree(cell)
    assert [*(left / "cells").rglob("*.json")]
    _, found = submit(Results(left), tmp_path / "left.zip")
    assert [(finding.kind, "controls and no row" in finding.reason) for finding in found] == [("incomplete", True)]
    assert not (tmp_path / "left.zip").exists()


def sealed(bundle: Path) -> verdict.Verdict:
    """A verdict of the highest tier on whatever the bundle holds."""
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
    judged = verdict.Judged(digest="0" * 64, tier=Tier.SEALED, reason="measured again under another secret")
    row = verdict.JudgedRow(records={"utility": judged}, controls={}, protocol=PROTOCOL, said=[])
    return verdict.Verdict(bundle=digest, rows={"d/c": row}, protocol=PROTOCOL, verified_by="us", created="2026")


def test_the_command_line_packs_verifies_and_refuses(
    handed: Handed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, key = tmp_path / "mine.bundle.zip", tmp_path / "key"
    make_pair(key)
    assert (
        main(
            ["leaderboard", "submit", str(handed.results.root), "--out", str(bundle), "--disclose", "--sign", str(key)]
        )
        == 0
    )
    assert main(["leaderboard", "verify", str(bundle), "--sign", str(key), "--trusted", f"{key}.pub"]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith("Tier: arithmetic-checked\n")
    assert f"Signed by {SigningKey.read(key).public}\n" in printed
    assert (tmp_path / "mine.verdict.json").is_file()
    make_pair(tmp_path / "other")
    signed = (tmp_path / "mine.verdict.json").read_bytes()
    capsys.readouterr()
    for more in ([], ["--sign", str(tmp_path / "other")]):
        assert main(["leaderboard", "verify", str(bundle), *more]) == 2
        assert "write elsewhere with --verdict" in capsys.readouterr().err
        assert (tmp_path / "mine.verdict.json").read_bytes() == signed
    for signer, more in ((SigningKey.read(key), ["--sign", str(key)]), (None, [])):
        verdict.write(sealed(bundle), higher := tmp_path / "higher.verdict.json", signer)
        assert main(["leaderboard", "verify", str(bundle), *more, "--verdict", str(higher)]) == 2
        assert "says sealed, and the new one arithmetic-checked at most" in capsys.readouterr().err
    assert main(["leaderboard", "verify", str(bundle), "--verdict", str(tmp_path)]) == 2
    assert "cannot be read: expected a file, found a folder; write elsewhere" in capsys.readouterr().err
    assert main(["leaderboard", "verify", str(bundle), "--verdict", str(tmp_path / "b.verdict.json")]) == 0
    assert main(["leaderboard", "verify", str(bundle), "--sign", str(key)]) == 0
    assert main(["leaderboard", "submit", str(handed.results.root), "--out", str(bundle)]) == 2
    bundle.write_bytes(bundle.read_bytes()[:-30])
    assert main(["leaderboard", "verify", str(bundle)]) == 2
    assert main(["leaderboard", "submit", str(tmp_path), "--out", str(tmp_path / "b.zip")]) == 1
    assert "it holds no record" in capsys.readouterr().err
