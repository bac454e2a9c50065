"""What keeps a row from being published, though each of its records by itself may be."""

from __future__ import annotations

from pathlib import Path

from made.current_records import current
from made.whole_rows import kept

from bench.workbench.inputs import COMMITMENT
from leaderboard.published import examined


def test_a_row_of_two_run_secrets_is_refused(tmp_path: Path) -> None:
    """Of runs under many secrets, the luckiest record of each evaluator would be handed in."""
    attack = {"kind": "reidentification", "attack": "nearest-neighbour"}
    fit, refused = examined(
        kept(tmp_path / "two", current(), current(inputs={COMMITMENT: "other"}, **attack)), current=False
    )
    assert not fit
    assert [reason for _, reason in refused] == ["mixed run secrets: 2 of them"]
    fit, refused = examined(kept(tmp_path / "one", current(), current(**attack)), current=False)
    assert list(fit)
    assert not refused
