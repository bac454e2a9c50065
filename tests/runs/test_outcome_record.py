"""What a run takes of an evaluation of data that may not be shared."""

from __future__ import annotations

from made.results_folders import restricted as record

from bench.results.disclosure_check import PEAKS, SHORTAGES
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


def test_of_a_fit_it_is_said_what_ran_short() -> None:
    assert restricted_fit(Fitted(claim=None, notes={**SHORT, "seen": "p10000032"}, seconds=1.0)).notes == SHORT
