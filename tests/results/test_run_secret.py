"""The run secret: made once, kept where its owner alone can read it, and never exchanged for another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import run_secret
from bench.results.results import Results
from bench.results.run_secret import RunSecret

CONTENT = bytes(range(32))


def given(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "secret"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_it_is_made_once_and_can_be_read_by_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.results.run_secret.fresh", Secret.fresh)
    results = Results(tmp_path / "r")
    assert results.commitment is None
    assert not results.root.exists()
    made = results.keep_secret()
    path = tmp_path / "r/artefacts/run-secret"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert Results(tmp_path / "r").keep_secret() == results.keep_secret() == made
    assert results.commitment == made.root.commitment()
    assert Results(tmp_path / "other").keep_secret() != made
    assert [found.name for found in path.parent.iterdir()] == ["run-secret"]


def test_runs_that_start_at_once_have_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.results.run_secret.fresh", Secret.fresh)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: Results(tmp_path).keep_secret(), range(64)))
    assert len({secret.root.content for secret in found}) == 1


def test_a_folder_never_changes_its_secret(tmp_path: Path) -> None:
    results, wanted = Results(tmp_path), Secret(CONTENT)
    assert results.keep_secret(wanted) == results.keep_secret(wanted) == results.keep_secret() == RunSecret(wanted)
    with pytest.raises(UsageError, match="another run secret"):
        results.keep_secret(Secret(bytes(32)))


@pytest.mark.parametrize("content", [b"", CONTENT[:31], CONTENT, CONTENT * 2])
def test_a_damaged_file_is_not_taken_for_a_secret(content: bytes, tmp_path: Path) -> None:
    path = given(tmp_path, content)
    with pytest.raises(UsageError, match="not the run secret as it was written"):
        run_secret.keep(path, None)
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [CONTENT, CONTENT.hex().encode(), CONTENT.hex().upper().encode() + b"\n"])
def test_users_give_bytes_or_hex_digits(content: bytes, tmp_path: Path) -> None:
    assert run_secret.given(given(tmp_path, content)) == Secret(CONTENT)


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (CONTENT, 0o640, "others than you may read"),
        (CONTENT, 0o604, "others than you may read"),
        (CONTENT[:31], 0o600, "must hold 32 bytes, or 64 hex digits"),
        (CONTENT.hex()[:63].encode(), 0o600, "must hold 32 bytes, or 64 hex digits"),
        (b"g" * 64, 0o600, "must hold 32 bytes, or 64 hex digits"),
        (b"\xff" * 64, 0o600, "must hold 32 bytes, or 64 hex digits"),
        (b"correcthorsebatterystaplecorrect", 0o600, "hardly drawn at random"),
        (bytes(32), 0o600, "hardly drawn at random"),
    ],
)
def test_other_files_are_refused(content: bytes, mode: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        run_secret.given(given(tmp_path, content, mode))


def test_a_job_makes_no_secret_in_a_folder_that_is_not_the_runs(tmp_path: Path) -> None:
    commitment = Results(tmp_path / "r").keep_secret().root.commitment()
    job = Results(tmp_path / "r", began_under=commitment)
    assert job.keep_secret().root.commitment() == commitment
    (tmp_path / "r").rename(tmp_path / "cut off")
    with pytest.raises(UsageError, match="no longer the folder that the run began in"):
        job.keep_secret()
    assert not (tmp_path / "r").exists()
