"""What a run takes of an evaluation of data that may not be shared."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from made.board_records import auc
from made.results_folders import restricted as record

from bench.results.disclosure_check import PEAKS, SHORTAGES, beyond_figures, rounded
from bench.results.records import ScoreRecord
from bench.runs.outcome_record import restricted, restricted_fit
from bench.runs.tasks import Evaluation, Fitted

IMAGE = 10**300 + 7
SHORT = {"memory of the device": SHORTAGES["memory of the device"]}


def test_what_is_measured_outside_of_the_worker_is_not_taken_from_it() -> None:
    data = record().dataset
    assert data is not None
    told = Evaluation(details={PEAKS: {"attack": 1.5}}, hardware={"threads": IMAGE})
    found = restricted(told, data, "cpu", own_attack=True, own_method=True)
    assert found.details == {}
    assert "threads" not in found.hardware or found.hardware["threads"] != IMAGE


def figure(value: float, low: float | None, high: float | None, **more: Any) -> ScoreRecord:
    return auc(value).model_copy(update={"low": low, "high": high, "parts": {}, **more})


def test_a_figure_of_restricted_data_has_the_digits_that_its_interval_bears() -> None:
    """An attack chose 17 digits of each: 56 bits a figure, of pixels."""
    data = record().dataset
    assert data is not None
    wide = figure(0.7123456789012345, 0.6523456789012345, 0.7723456789012345, p=0.01234567890123456)
    bare = figure(0.7123456789012345, None, None)
    point = figure(0.7123456789012345, 0.7123456789012344, 0.7123456789012346)
    told = Evaluation(scores={"wide": wide.model_copy(update={"parts": {"half samples": bare}}), "point": point})
    found = restricted(told, data, "cpu", own_attack=True, own_method=True).scores
    assert [getattr(found["wide"], name) for name in ("value", "low", "high", "p")] == [0.712, 0.652, 0.773, 0.0123]
    assert found["wide"].parts["half samples"].value == 0.712
    assert found["point"].value == 0.71235
    made = record().model_copy(update={"scores": {"reid-auc": found["wide"]}})
    assert not list(beyond_figures(made))
    exact = found["wide"].model_copy(update={"value": wide.value})
    assert "more digits than its interval bears" in "".join(
        beyond_figures(made.model_copy(update={"scores": {"reid-auc": exact}}))
    )


@pytest.mark.parametrize("seed", range(20))
def test_rounded_figures_stay_as_they_are_and_within_their_intervals(seed: int) -> None:
    random = Random(seed)
    for _ in range(200):
        value, reach = random.random(), 10.0 ** -random.uniform(0, 9)
        once = rounded(figure(value, value - reach * random.random(), value + reach * random.random()))
        assert rounded(once) == once
        assert once.low is not None
        assert once.high is not None
        assert once.low <= once.value <= once.high


@pytest.mark.parametrize(("written", "kept"), [("surrogate", True), ("surrogate[base=theirs.py:Theirs]", False)])
def test_an_attack_that_holds_one_of_other_authors_speaks_as_theirs(written: str, kept: bool) -> None:
    one = record()
    bounds = {"compared at": "56 x 56 of 224 x 224 pixels"}
    attack = one.method.model_copy(update={"name": "surrogate", "written": written, "role": None})
    made = one.model_copy(update={"attack": attack, "details": bounds})
    assert ("it holds details" not in list(beyond_figures(made))) is kept


def test_of_a_fit_it_is_said_what_ran_short() -> None:
    assert restricted_fit(Fitted(claim=None, notes={**SHORT, "seen": "p10000032"}, seconds=1.0)).notes == SHORT
