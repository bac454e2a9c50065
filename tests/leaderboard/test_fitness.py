"""What keeps a row from being published, though each of its records by itself may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.current_records import current
from made.whole_rows import kept

from bench.results.records import PluginRecord
from bench.workbench.inputs import COMMITMENT
from leaderboard.published import examined, unfit
from leaderboard.repeat import as_today


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


def test_no_method_but_the_project_s_own_references_is_a_reference() -> None:
    """References go unrated: a stranger's method would need no check of its word."""
    made = current("blur")
    assert not unfit(made, {}, current=False)
    assert not unfit(current("identity"), {}, current=False)
    for lie in ({}, {"name": "identity"}, {"name": "identity", "written": "identity", "origin": "theirs"}):
        said = made.model_copy(update={"method": made.method.model_copy(update={"role": "hides nothing", **lie})})
        assert "calls its method a reference (hides nothing)" in " ".join(unfit(said, {}, current=False))


def test_a_record_of_changed_files_is_not_published() -> None:
    made = current("blur").model_copy(update={"git": "0123456789ab-dirty"})
    assert any("changed files" in why for why in unfit(made, {}, current=True))
    assert not any("changed files" in why for why in unfit(made.model_copy(update={"git": "0123456789ab"}), {}))
    assert not any("changed files" in why for why in unfit(made, {}, current=False))  # as it was published or handed in


@pytest.mark.parametrize("place", ["method", "attack", "metric", "evaluator", "dataset", "public", "nested"])
def test_no_file_that_a_record_names_is_run_to_look_at_it(place: str, tmp_path: Path) -> None:
    path = tmp_path / "theirs.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    named = f"{path}:Theirs"
    made = current(kind="reidentification", attack="nearest-neighbour")
    assert made.attack is not None
    (metric, told), *_ = made.metrics.items()
    update: dict[str, object] = {
        "method": {"method": made.method.model_copy(update={"written": named})},
        "nested": {"method": made.method.model_copy(update={"written": f"{made.method.name}[inner={named}]"})},
        "attack": {"attack": made.attack.model_copy(update={"written": named})},
        "metric": {"metrics": {metric: told.model_copy(update={"written": named})}},
        "evaluator": {"measured_by": named},
        "dataset": {"choice": {**made.choice, "dataset": named}},
        "public": {"choice": {**made.choice, "public": named}},
    }[place]
    theirs = made.model_copy(update=update)
    assert any("a plug-in from a file" in why for why in unfit(theirs, {}, current=True))
    as_today(theirs.method, theirs.preset)
    assert not (tmp_path / "ran").exists()


def test_a_method_that_only_says_to_be_the_project_s_stands_as_it_was_written() -> None:
    theirs = PluginRecord(name="mine", written="mine[width=2]", origin="veil-bench", parameters={}, source="", code="")
    assert as_today(theirs, "smoke") == "mine[width=2]"
