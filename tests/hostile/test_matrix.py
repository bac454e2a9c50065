"""A sample of the hostile matrix; `python tests/hostile/matrix.py` runs all of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
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
@pytest.mark.parametrize("place", SAMPLE)
def test_misbehaviour_ends_in_one_bounded_record_and_leaves_no_process(tmp_path: Path, place: str) -> None:
    found = run(tmp_path / place, SAMPLE[place], place, jobs=2)
    assert {cell: outcome.wrong for cell, outcome in found.items() if outcome.wrong} == {}
    words = {cell: outcome.word for cell, outcome in found.items()}
    assert {cell: words[cell] for cell in WORDS if cell in words} == {
        cell: word for cell, word in WORDS.items() if cell[1] == place
    }


def test_the_sample_is_of_the_matrix() -> None:
    assert set(SAMPLE) <= set(PLACES)
    assert {mode for modes in SAMPLE.values() for mode in modes} <= set(MODES)
    assert len(MODES) >= 50


def test_the_table_says_what_is_wrong() -> None:
    found = {("a", "fit"): Outcome("ok", ()), ("a", "query"): Outcome("died", ("2 processes are left",))}
    assert table(found).splitlines()[2] == "| a | ok | **died: 2 processes are left** |"
