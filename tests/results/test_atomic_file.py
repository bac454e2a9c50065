"""Files that appear whole, and what writers leave that are killed on the way."""

from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.results.atomic_file import remove_unfinished, write_atomically, write_once


def test_what_a_killed_writer_left_goes_with_the_next_writing(tmp_path: Path) -> None:
    path = tmp_path / "sets.json"
    left, other = tmp_path / f".sets.json.{'0a' * 8}", tmp_path / f".sets.json.{'0a' * 8}.mine"
    left.write_bytes(b"half")
    other.write_bytes(b"of somebody else")
    write_atomically(path, b"whole")
    assert path.read_bytes() == b"whole"
    assert not left.exists()
    assert other.exists()


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    busy = tmp_path / f".sets.json.{'0a' * 8}"
    with busy.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        remove_unfinished(tmp_path / "sets.json")
        assert busy.exists()
    remove_unfinished(tmp_path / "sets.json")
    assert not busy.exists()


def test_writers_that_write_at_once_do_not_remove_one_anothers_files(tmp_path: Path) -> None:
    path, contents = tmp_path / "f", {bytes([number]) * 5000 for number in range(8)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: write_atomically(path, content), [*contents] * 8))
    assert path.read_bytes() in contents
    assert [found.name for found in tmp_path.iterdir()] == ["f"]


def test_a_file_that_is_written_once_stays(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_once(path, b"first", mode=0o600)
    write_once(path, b"second", mode=0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"first", 0o600)
    assert [found.name for found in tmp_path.iterdir()] == ["secret"]


def test_nothing_is_left_where_a_file_cannot_be_put(tmp_path: Path) -> None:
    (tmp_path / "f" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match="f"):
        write_atomically(tmp_path / "f", b"content")
    assert [found.name for found in tmp_path.iterdir()] == ["f"]
