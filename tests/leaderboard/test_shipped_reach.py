from __future__ import annotations

import pytest

from bench.cli import main
from leaderboard.reach import reach, shipped


def test_what_is_shipped_covers_the_ladder_for_every_attack_in_it() -> None:
    attacks = {one.attack.name: one for one in shipped()}
    assert "relational" in attacks
    for one in attacks.values():
        found = reach(one.attack, one.preset, one.dataset, shipped())
        assert found[0].method == "identity"
        assert found[0].state == "broken"
        assert sum(rung.step is not None for rung in found) >= 7


def test_the_ladder_is_shown_before_anything_was_run(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reach", "--results", str(tmp_path), "--preset", "first-look"]) == 0
    assert "relational" in capsys.readouterr().out
