"""The list of a site's files is split where it is long, and a part of another build is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.results.signed_json import AlteredError
from leaderboard import site
from leaderboard.site import Ledger


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "MOST", 2)


def some(count: int, made_from: str = "x") -> Ledger:
    return Ledger({f"{place}.html": {"sha256": str(place), "inputs": made_from} for place in range(count)}, made_from)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_what_was_written_is_read(tmp_path: Path, count: int) -> None:
    some(count).write(tmp_path)
    assert Ledger.read(tmp_path) == some(count)
    assert len(list(tmp_path.glob("files*.json"))) == max(1, -(-count // 2))


@pytest.mark.usefixtures("short")
def test_a_shorter_ledger_leaves_no_part_of_a_longer_one(tmp_path: Path) -> None:
    some(7).write(tmp_path)
    some(3).write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files-2.json", "files.json"]
    assert Ledger.read(tmp_path) == some(3)


@pytest.mark.usefixtures("short")
def test_a_part_of_another_build_is_refused_by_name(tmp_path: Path) -> None:
    some(3, "earlier").write(tmp_path)
    earlier = (tmp_path / "files-2.json").read_bytes()
    some(3).write(tmp_path)
    (tmp_path / "files-2.json").write_bytes(earlier)
    with pytest.raises(AlteredError, match=r"files-2\.json: it is not the list"):
        Ledger.read(tmp_path)
    (tmp_path / "files-2.json").unlink()
    with pytest.raises(FileNotFoundError):
        Ledger.read(tmp_path)
