"""A sample of the hostile matrix; `python tests/hostile/matrix.py` runs all of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from made.forked import Forked
from matrix import Outcome, run, table
from misbehaving import MODES, PLACES

SAMPLE = {
    "fit": ("daemon-and-gone", "kill-group", "garbage", "raise-odd", "names"),
    "notes": ("fork-and-both-go-on", "reduce", "tensor", "surrogates", "heap"),
    "attack": ("exit-77", "half-message", "few-descriptors", "wrong-shape"),
}
WORDS = {
    ("daemon-and-gone", "fit"): "died", ("kill-group", "fit"): "died", ("garbage", "fit"): "protocol",
    ("raise-odd", "fit"): "error", ("reduce", "notes"): "contract", ("tensor", "notes"): "contract",
    ("surrogates", "notes"): "ok", ("heap", "notes"): "contract", ("exit-77", "attack"): "died",
    ("half-message", "attack"): "protocol",
}  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="daemons are found by Linux alone")
def test_misbehaviour_ends_in_one_bounded_record_and_leaves_no_process(tmp_path: Path) -> None:
    found = run(tmp_path / "runs", SAMPLE, jobs=2, start=Forked)
    assert set(found) == {(mode, place) for place, modes in SAMPLE.items() for mode in modes}
    assert {cell: outcome.wrong for cell, outcome in found.items() if outcome.wrong} == {}
    assert {cell: found[cell].word for cell in WORDS} == WORDS


def test_the_sample_is_of_the_matrix() -> None:
    assert set(SAMPLE) <= set(PLACES)
    assert {mode for modes in SAMPLE.values() for mode in modes} <= set(MODES)
    assert len(MODES) >= 50


def test_the_table_says_what_is_wrong() -> None:
    found = {("a", "fit"): Outcome("ok", ()), ("a", "query"): Outcome("died", ("2 processes are left",))}
    assert table(found).splitlines()[2] == "| a | ok | **died: 2 processes are left** |"
