"""Folders of rooms: one that is used stays, one whose judge was killed goes, at whatever moment that was."""

from __future__ import annotations

import fcntl
from pathlib import Path

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
