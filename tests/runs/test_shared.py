"""Workers that share a plan: each job done once, a lost worker's by another, and nobody waits for what he cannot do."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from bench.results import lease
from bench.results.heartbeat import file_time
from bench.results.queue import Queue, job_file
from bench.runs.answers import Evaluation, Fitted
from bench.runs.backend import Job, Outcome
from bench.runs.offer import DiskFailureError, Offer, TimeUpError
from bench.runs.shared import MOST_TRIES, MOST_TURNS, Shared


class Fake:
    """Does jobs at once, and counts them."""

    def __init__(self, done: Counter[str], look: Callable[[], None], outcome: Outcome | None = None) -> None:
        self.done, self.look, self.outcome = done, look, outcome
        self.jobs: list[Job] = []

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def next(self) -> tuple[Job, Outcome] | None:
        self.look()
        job = self.jobs.pop()
        self.done[job.key] += 1
        value: object = Fitted(claim=None, notes={"of": job.key}, seconds=1.0) if job.prepares else Evaluation()
        return job, self.outcome or Outcome("ok", value, None, None, None, 1.0)

    def close(self) -> None:
        self.jobs = []


def job(name: str, **more: object) -> Job:
    key = name if " " in name else f"evaluate {name}"
    return Job(name, print, None, Evaluation, 60.0, Path("log"), key=key, prepares=key.startswith("fit"), **more)  # type: ignore[arg-type]


def offer(**more: object) -> Offer:
    told = {"host": "here", "hardware": "0" * 12}
    usual = {"devices": frozenset({"cpu"}), "alone": False, "told": told, "seconds": 60.0, "ends": None}
    return Offer(**{**usual, "patient": lambda seconds: seconds < 1, **more})  # type: ignore[arg-type]


class Worker:
    """Shared jobs, done by a fake."""

    def __init__(self, folder: Path, done: Counter[str], outcome: Outcome | None = None, **more: object) -> None:
        self.shared = Shared(
            Queue(folder), "plan", offer(**more), lambda look: Fake(done, look, outcome), lambda key: None
        )

    def drain(self) -> list[tuple[Job, Outcome]]:
        found = []
        with closing(self.shared):
            while (told := self.shared.next()) is not None:
                found.append(told)
        return found


def test_workers_at_once_do_every_job_once_and_all_hear_of_all(tmp_path: Path) -> None:
    done: Counter[str] = Counter()
    workers = [Worker(tmp_path, done) for _ in range(5)]
    for each in workers:
        for number in range(60):
            each.shared.submit(job(f"fit {number}" if number < 10 else str(number)))
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(Worker.drain, workers))
    assert set(done.values()) == {1}
    assert len(done) == 60
    for heard in found:
        assert len(heard) == 60
        fits = {made.key: outcome.value for made, outcome in heard if made.prepares}
        assert all(isinstance(value, Fitted) and value.notes == {"of": key} for key, value in fits.items())
    assert sum(not outcome.elsewhere for heard in found for _, outcome in heard) == 60
    assert list((tmp_path / "leases").iterdir()) == []
    assert len(Queue(tmp_path).ended("plan")) == 60


def claimed(folder: Path, key: str) -> lease.Lease:
    found = Queue(folder).claim(job_file(key), {"host": "elsewhere"}, seconds=60)
    assert found is not None
    return found


def test_the_job_of_a_lost_worker_is_done_by_another(tmp_path: Path) -> None:
    done: Counter[str] = Counter()
    lost = claimed(tmp_path, "evaluate a")
    worker = Worker(tmp_path, done)
    worker.shared.submit(job("a"))
    assert worker.drain() == []  # it may live
    assert worker.shared.left == 1
    when = file_time(tmp_path) - 61
    os.utime(lost.path, (when, when))
    worker = Worker(tmp_path, done)
    worker.shared.submit(job("a"))
    assert [outcome.status for _, outcome in worker.drain()] == ["ok"]
    assert done == {"evaluate a": 1}


def test_a_job_at_which_many_workers_were_lost_is_given_up(tmp_path: Path) -> None:
    for _ in range(MOST_TURNS):
        claimed(tmp_path, "evaluate a").give_back()
    done: Counter[str] = Counter()
    worker = Worker(tmp_path, done)
    worker.shared.submit(job("a"))
    ((_, outcome),) = worker.drain()
    assert (outcome.status, outcome.code, done) == ("failed", "died", {})
    assert "workers in a row" in str(outcome.reason)


def test_workers_that_were_told_to_stop_say_nothing_against_a_job(tmp_path: Path) -> None:
    for _ in range(5 * MOST_TURNS):
        claimed(tmp_path, "evaluate a").give_back(told_to_stop=True)
    worker = Worker(tmp_path, Counter())
    worker.shared.submit(job("a"))
    assert [outcome.status for _, outcome in worker.drain()] == ["ok"]
    for _ in range(MOST_TRIES):
        claimed(tmp_path, "evaluate b").give_back(told_to_stop=True)
    worker = Worker(tmp_path, Counter())
    worker.shared.submit(job("b"))
    assert [outcome.code for _, outcome in worker.drain()] == ["died"]  # nor is it tried without an end


def test_a_worker_whose_disk_is_full_gives_its_job_back_and_takes_no_other(tmp_path: Path) -> None:
    done: Counter[str] = Counter()
    full = Outcome("failed", None, "disk", "OSError: No space left on device", "fit", 1.0)
    worker = Worker(tmp_path, done, full)
    for name in "abc":
        worker.shared.submit(job(name))
    with pytest.raises(DiskFailureError, match=r"is given back, .*No space left.* make room"):
        worker.drain()
    assert done.total() == 1
    assert Queue(tmp_path).ended("plan") == set()
    other = Worker(tmp_path, done)
    for name in "abc":
        other.shared.submit(job(name))
    assert {outcome.status for _, outcome in other.drain()} == {"ok"}


def test_a_failure_of_a_worker_that_was_taken_for_lost_is_nobodys(tmp_path: Path) -> None:
    done: Counter[str] = Counter()
    worker = Worker(tmp_path, done, Outcome("failed", None, "died", "killed", "attack", 1.0))
    worker.shared.submit(job("a"))
    true = worker.shared._inner.next

    def late() -> tuple[Job, Outcome] | None:
        (held,) = (tmp_path / "leases").iterdir()
        os.utime(held, (1.0, 1.0))
        claimed(tmp_path, "evaluate a")
        return true()

    worker.shared._inner.next = late  # type: ignore[method-assign]
    ((_, outcome),) = worker.drain()
    assert outcome.elsewhere
    assert Queue(tmp_path).ended("plan") == set()


def test_data_that_are_not_here_may_be_elsewhere(tmp_path: Path) -> None:
    absent = Outcome("failed", None, "data", "no such folder", "data", 1.0)
    for _ in range(2):
        worker = Worker(tmp_path, Counter(), absent)
        worker.shared.submit(job("data x"))
        assert [outcome.code for _, outcome in worker.drain()] == ["data"]
    assert Queue(tmp_path).ended("plan") == set()
    assert list((tmp_path / "leases").iterdir()) == []


def test_workers_take_what_suits_them(tmp_path: Path) -> None:
    jobs = [job("timed", alone=True), job("gpu", device="cuda"), job("plain")]
    done: Counter[str] = Counter()
    first = Worker(tmp_path, done)
    for each in jobs:
        first.shared.submit(each)
    assert [made.name for made, _ in first.drain()] == ["plain"]
    assert first.shared.left == 2
    second = Worker(tmp_path, done, alone=True)
    for each in jobs:
        second.shared.submit(each)
    assert {made.name: outcome.elsewhere for made, outcome in second.drain()} == {"timed": False, "plain": True}


def test_a_worker_whose_time_is_up_gives_its_job_back(tmp_path: Path) -> None:
    done: Counter[str] = Counter()
    now = time.monotonic()
    worker = Worker(tmp_path, done, ends=(now + 3600, 3600.0))
    worker.shared.submit(job("a"))

    def long() -> tuple[Job, Outcome] | None:
        raise TimeUpError

    worker.shared._inner.next = long  # type: ignore[method-assign]
    with pytest.raises(TimeUpError):
        worker.drain()
    other = Worker(tmp_path, done)
    other.shared.submit(job("a"))
    assert len(other.drain()) == 1
    assert done == {"evaluate a": 1}


def test_with_little_time_left_a_worker_starts_nothing_that_takes_longer(tmp_path: Path) -> None:
    now = time.monotonic()
    worker = Worker(tmp_path, Counter(), ends=(now + 30, 3600.0))
    worker.shared.submit(job("a"))  # of a minute
    assert worker.drain() == []
    assert worker.shared.left == 1
    fresh = Worker(tmp_path, Counter(), ends=(now + 30, 30.0))
    fresh.shared.submit(job("a"))
    assert len(fresh.drain()) == 1  # else nobody with so little time would ever do it


def test_a_lease_on_a_job_that_has_ended_goes_once_its_holder_is_lost(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    lost, held, open_ = (claimed(tmp_path, f"evaluate {name}") for name in "abc")
    for each in "ab":
        queue.end("plan", job_file(f"evaluate {each}"), "done", {})
    for each in (lost, open_):
        each.give_back()
    queue.forget_leases("plan")
    assert {path.name for path in queue.leases.iterdir()} == {held.path.name, open_.path.name}
