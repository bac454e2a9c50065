"""Leases: one holder at a time, whoever asks at once; a lost holder's turn passes on, by the file system's clock."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from made.gone import gone_name

from bench.results import lease, process_id
from bench.results.heartbeat import file_time, touched
from bench.results.lease import Lease, claim, holder, turns


def silent_for(found: Lease, seconds: float) -> None:
    when = file_time(found.folder) - seconds
    os.utime(found.path, (when, when))


def at_once(folder: Path, count: int = 16) -> list[Lease]:
    with ThreadPoolExecutor(count) as pool:
        found = pool.map(lambda number: claim(folder, "job", {"number": number}, seconds=60), range(count))
        return [each for each in found if each is not None]


def test_of_many_who_ask_at_once_one_has_it_in_each_turn(tmp_path: Path) -> None:
    for turn in range(1, 6):
        (found,) = at_once(tmp_path)
        assert (found.turn, found.is_held()) == (turn, True)
        assert at_once(tmp_path) == []
        silent_for(found, 61)


@pytest.mark.parametrize("hours", [-1, 1])
def test_only_the_clock_of_the_file_system_counts(hours: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: file_time(tmp_path) + 3600 * hours)
    found = claim(tmp_path, "job", {}, seconds=60)
    assert found is not None
    silent_for(found, 59)
    assert claim(tmp_path, "job", {}, seconds=1) is None  # the holder's own word counts, and not who asks
    silent_for(found, 61)
    assert claim(tmp_path, "job", {}, seconds=60) is not None


def test_who_touches_it_keeps_it_and_who_was_taken_for_lost_knows(tmp_path: Path) -> None:
    found = claim(tmp_path, "job", {}, seconds=60)
    assert found is not None
    with touched(found.path, 0.01):
        silent_for(found, 1000)
        while file_time(tmp_path) - found.path.stat().st_mtime > 60:
            pass
        assert claim(tmp_path, "job", {}, seconds=60) is None
    silent_for(found, 1000)
    second = claim(tmp_path, "job", {}, seconds=60)
    assert second is not None
    assert (second.turn, second.is_held(), found.is_held()) == (2, True, False)
    found.settle()  # it comes back, and is through: the other's turn stays
    assert second.is_held()
    second.settle()
    assert list(tmp_path.iterdir()) == []


def test_what_was_given_back_is_free_at_once_and_its_turn_is_counted(tmp_path: Path) -> None:
    first = claim(tmp_path, "job", {}, seconds=60)
    assert first is not None
    first.give_back()
    assert holder(tmp_path, "job", [1], file_time(tmp_path)).given_back
    second = claim(tmp_path, "job", {}, seconds=60)
    assert second is not None
    assert second.turn == 2


def test_turns_of_holders_that_were_told_to_stop_are_not_counted_as_lost(tmp_path: Path) -> None:
    for turn, told in enumerate([True, False, True, False], start=1):
        found = claim(tmp_path, "job", {}, seconds=60)
        assert found is not None
        assert found.turn == turn
        found.give_back(told_to_stop=told)
    found = claim(tmp_path, "job", {}, seconds=60)
    assert found is not None
    assert found.lost == 2


def test_a_full_disk_leaves_no_turn_that_would_keep_others_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("bench.results.lease.os.fdopen", lambda handle, mode: FullFile(handle))
        for _ in range(20):
            with pytest.raises(OSError, match="No space left"):
                claim(tmp_path, "job", {}, seconds=60)
    found = claim(tmp_path, "job", {}, seconds=60)
    assert found is not None
    assert (found.turn, found.lost) == (1, 0)


class FullFile(io.FileIO):
    """A file on a disk that is full."""

    def write(self, content: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_the_job_of_a_process_that_has_ended_is_free_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("bench.results.process_id.own_name", gone_name)
        assert claim(tmp_path, "job", {}, seconds=60) is not None
    assert claim(tmp_path, "job", {}, seconds=60) is not None


def test_half_written_words_are_no_reason_to_take_it(tmp_path: Path) -> None:
    (tmp_path / "job.1").write_bytes(b'{"maker": "')
    assert claim(tmp_path, "job", {}, seconds=1) is None
    silent_for(Lease(tmp_path, "job", 1), lease.DEFAULT_SECONDS + 1)
    assert claim(tmp_path, "job", {}, seconds=1) is not None


def test_who_looked_before_others_had_turns_does_not_go_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job.3").write_bytes(b"{}")  # turns 1 and 2 are over and forgotten
    known, looked = turns, iter([True])
    monkeypatch.setattr("bench.results.lease.turns", lambda folder: {} if next(looked, False) else known(folder))
    assert claim(tmp_path, "job", {}, seconds=60) is None
    assert [path.name for path in tmp_path.iterdir()] == ["job.3"]


def test_names_tell_processes_of_one_machine_apart() -> None:
    assert process_id.own_name() != process_id.own_name()
    assert not process_id.is_gone(process_id.own_name())


@pytest.mark.skipif(sys.platform == "win32", reason="no process waits there to be taken leave of")
def test_a_process_that_has_ended_is_gone_before_its_parent_takes_leave_of_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = process_id.own_name().replace(f"-{os.getpid()}-", f"-{child.pid}-")
    assert not process_id.is_gone(name)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_id.is_gone(name)
    child.communicate()
