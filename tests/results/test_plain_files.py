"""Pipes, folders and altered private files in a results folder are named, and nothing waits for them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from made.results_folders import folder

from bench.disk.atomic_file import read_plain
from bench.plugins.spec import UsageError
from bench.randomness import Secret
from bench.results import log_file, verdict
from bench.results.build_folder import CACHE_TAG
from bench.results.records import RecordError
from bench.results.results import Results
from bench.results.signing_key import read_public
from bench.results.verdict import VerdictError
from leaderboard.packed_rows import PackedRowError, read_row
from leaderboard.site import build


def listen(path: Path) -> None:
    here = socket.socket(socket.AF_UNIX)
    os.chdir(path.parent)  # the address of a socket is short
    here.bind(path.name)
    here.close()


PLACED: dict[str, Callable[[Path], object]] = {
    "a pipe": lambda path: os.mkfifo(path),
    "a socket": listen,
    "a folder": lambda path: path.mkdir(),
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", PLACED)
def test_what_is_no_file_in_a_records_place_is_named_and_the_board_is_built(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = folder(tmp_path / "r", count=1)
    for name in ("cells/synth-cxr/c0/other.json", "cells/synth-cxr/c0/utility--look-000000000000.png"):
        PLACED[kind](results.root / name)
    told = {name: str(reason) for name, reason in results.records() if isinstance(reason, RecordError)}
    assert told == {"cells/synth-cxr/c0/other.json": f"cells/synth-cxr/c0/other.json: expected a file, found {kind}"}
    assert build(results, tmp_path / "site").is_file()


@pytest.mark.parametrize("kind", PLACED)
def test_other_readers_wait_for_no_pipe_either(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.verdict.json", "a.pub", "a.json.xz"):
        PLACED[kind](tmp_path / name)
    with pytest.raises(OSError, match=kind):
        read_plain(tmp_path / "a.pub")
    with pytest.raises(VerdictError, match=kind):
        verdict.standing(tmp_path / "a.verdict.json")
    (found,) = verdict.verdicts(tmp_path, frozenset())
    assert kind in str(found)
    assert str(tmp_path) not in str(found)
    with pytest.raises(UsageError, match="cannot read the public key"):
        read_public(tmp_path / "a.pub")
    with pytest.raises(PackedRowError, match=kind):
        read_row(tmp_path / "a.json.xz")


def test_a_file_beyond_its_bound_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    os.truncate(tmp_path / "a", 1 << 42)
    with pytest.raises(OSError, match="at most"):
        read_plain(tmp_path / "a")


def written_log(results: Results, text: bytes) -> Path:
    log = results.log("synth-cxr", "c0", "utility")
    log.parent.mkdir(parents=True, exist_ok=True)
    log_file.close(log, _with(log, text))
    return log


def _with(log: Path, text: bytes) -> int:
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, text)
    return handle


def test_every_flip_in_secrets_logs_and_tags_is_noticed(tmp_path: Path) -> None:
    results = folder(tmp_path / "r", count=1)
    results.cell_secrets.add({"a": Secret.of_seed(1)})
    log = results.log("synth-cxr", "c0", "utility")
    log.unlink()
    written_log(results, b"first\n")
    written_log(results, b"second")
    assert not list(results.problems())
    tag = next((results.root / "artefacts").glob(f"**/{CACHE_TAG}"))
    for path in (results.secret_file, results.cell_secrets.path, log, tag):
        whole = path.read_bytes()
        for place in {*range(0, len(whole), max(1, len(whole) // 40)), len(whole) - 1}:
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            assert [name for name, _ in results.problems()] == [path.relative_to(results.root).as_posix()], place
        path.write_bytes(whole)
    assert not list(results.problems())


def test_a_log_of_a_killed_job_and_of_an_earlier_version_are_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"cut off")
    assert "its job was killed (the same run again adds it), or it was altered" in str(
        log_file.problem(log, sealed=True)
    )
    assert log_file.problem(log, sealed=False) is None
    log.write_bytes(b"")
    assert log_file.problem(log, sealed=True) is None
