"""What a row cost, as its page says it."""

from __future__ import annotations

from made.board_records import record

from leaderboard.board import rows
from leaderboard.repeat import cost


def test_a_training_counts_once_and_jobs_by_the_clock_of_their_device() -> None:
    told = {"fit": 90.0, "cpu": 1800.0, "wall": 100.0}
    some = [
        record("syfer", "utility", kind="utility", seconds=told),
        record("syfer", "relational", seconds={**told, "attack": 12.5}),
        record("syfer", "nearest-neighbour", seconds={**told, "attack": 3.0}),
    ]
    (row,) = rows(some)
    assert cost(row) == (
        "training 1.5 min, the longest attack 12 s (relational), all jobs 1.5 h of processor time on cpu"
    )
    (row,) = rows([each.model_copy(update={"device": "cuda"}) for each in some])
    assert cost(row).endswith("all jobs 5.0 min of device time on cuda")


def test_records_that_say_nothing_of_time_say_nothing_here() -> None:
    (row,) = rows([record("identity", "utility", kind="utility", seconds={})])
    assert cost(row) == ""
