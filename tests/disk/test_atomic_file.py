"""Files that appear whole, and what writers leave that are killed on the way."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from made.results_folders import gone_name

from bench.disk import process_id
from bench.disk.atomic_file import remove_unfinished, write_atomically, write_once


def test_what_a_killed_writer_left_goes_with_the_next_writing(tmp_path: Path) -> None:
    path = tmp_path / "sets.json"
    left, other = tmp_path / f".sets.json.{gone_name()}", tmp_path / f".sets.json.{gone_name()}.mine"
    left.write_bytes(b"half")
    other.write_bytes(b"of somebody else")
    write_atomically(path, b"whole")
    assert path.read_bytes() == b"whole"
    assert not left.exists()
    assert other.exists()


@pytest.mark.parametrize("machine", [process_id.machine(), "0" * 12])
def test_what_is_being_written_stays_until_nobody_can_be_at_it(machine: str, tmp_path: Path) -> None:
    busy = tmp_path / f".sets.json.{machine}-{os.getpid()}-{'0a' * 8}"
    busy.touch()
    for hours in (0, 23, 25):
        when = time.time() - 3600 * hours
        os.utime(busy, (when, when))
        remove_unfinished(tmp_path / "sets.json")
        assert busy.exists() == (hours < 24)


def test_a_writer_that_was_taken_for_dead_writes_again(tmp_path: Path) -> None:
    path, asked = tmp_path / "f", []

    def still() -> bool:
        if not asked:
            (written,) = tmp_path.glob(".f.*")
            written.unlink()
        asked.append(1)
        return True

    assert write_atomically(path, b"content", still=still)
    assert (path.read_bytes(), len(asked)) == (b"content", 2)
    assert [found.name for found in tmp_path.iterdir()] == ["f"]


def test_what_is_no_longer_wanted_is_not_put_there(tmp_path: Path) -> None:
    assert not write_atomically(tmp_path / "f", b"content", still=lambda: False)
    assert list(tmp_path.iterdir()) == []


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
