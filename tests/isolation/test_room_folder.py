"""Folders of rooms: one that is used stays, one whose judge was killed goes, at whatever moment that was."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from bench.isolation import remove_unused


def test_rooms_that_nobody_holds_go(tmp_path: Path) -> None:
    for name in ("room-used", "room-left"):
        (tmp_path / name / "in").mkdir(parents=True)
        (tmp_path / name / "lock").touch()
    (tmp_path / "room-unlocked").mkdir()  # its judge was killed before it made the lock
    with (tmp_path / "room-used" / "lock").open("rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_unused(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["room-used"]
    remove_unused(tmp_path)
    assert not list(tmp_path.iterdir())


def test_where_no_room_was_made_nothing_is(tmp_path: Path) -> None:
    remove_unused(tmp_path / "rooms")
    assert not (tmp_path / "rooms").exists()


def test_whatever_a_plugin_put_into_a_room_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "rooms" / "room-left"
    for name in ("in", "out", "kept"):
        (room / name).mkdir(parents=True)
    (room / "in" / "rows").touch()
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "of somebody else").touch()
    (room / "out" / "link").symlink_to(kept)
    (room / "kept" / "closed" / "within").mkdir(parents=True)
    for path in ("closed/within", "closed", "."):
        (room / "kept" / path).chmod(0)
    monkeypatch.chdir(room / "out")
    for _ in range(300):  # deeper than a path may be long
        Path("deeper than before").mkdir()
        os.chdir("deeper than before")
    monkeypatch.setenv("PATH", "")
    os.chdir(tmp_path)
    remove_unused(tmp_path / "rooms")
    assert {path.name for path in tmp_path.rglob("*")} == {"rooms", "kept", "of somebody else"}
