"""How long a job has worked is told by its processes, not by the wall."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import psutil
import pytest

from bench.runs.job_process import STILL_SECONDS, WALLS, JobClock

Times = namedtuple("Times", "user system children_user children_system")


@dataclass(eq=False)
class Fake:
    """A process that has taken so much processor time, and whose reaped children left so much."""

    own: float = 0.0
    children: float = 0.0

    def cpu_times(self) -> Times:
        return Times(self.own, 0.0, self.children, 0.0)


@dataclass
class Watched:
    """A job of some processes and its clock, on a wall that runs by the second."""

    clock: JobClock
    root: Fake
    living: list[Fake]
    now: float = 0.0

    def until_stopped(self, shares: Sequence[float], *, says: float = float("inf"), most: float = 1e5) -> str:
        """Seconds and reason of its end, where each process has such a share of a core, and it says where it is."""
        while self.now < most:
            self.now += 1.0
            for process, share in zip(self.living, shares, strict=True):
                process.own += share
            self.look()
            if self.now % says == 0:
                self.clock.said(self.now)
            if (why := self.clock.overdue(self.now)) is not None:
                return f"{self.now:g} s: {why}"
        return "never"

    def look(self) -> None:
        self.clock.look(self.now, cast(psutil.Process, self.root), cast("list[psutil.Process]", self.living))


@pytest.fixture
def watched() -> Watched:
    return Watched(JobClock(600.0, 0.0), Fake(), [Fake(), Fake()])


def test_a_job_alone_on_the_machine_has_its_limit_on_the_wall(watched: Watched) -> None:
    assert watched.until_stopped((1.0, 0.0)) == "601 s: stopped after 600 s of processor time"


def test_a_loaded_machine_gives_it_longer(watched: Watched) -> None:
    assert watched.until_stopped((0.125, 0.0)) == "4801 s: stopped after 600 s of processor time"


def test_what_a_child_computes_while_the_job_sleeps_counts(watched: Watched) -> None:
    assert watched.until_stopped((0.0, 1.0)) == "601 s: stopped after 600 s of processor time"


def test_many_processes_at_once_take_no_more_than_the_wall(watched: Watched) -> None:
    assert watched.until_stopped((8.0, 8.0)) == "601 s: stopped after 600 s of processor time"
    assert watched.clock.cpu == 601 * 16.0


def test_a_job_that_sleeps_is_stopped_when_it_has_done_so_for_long(watched: Watched) -> None:
    said = f"stopped after {STILL_SECONDS:g} s in which it neither computed nor said where it is"
    assert watched.until_stopped((0.0005, 0.0)) == f"{STILL_SECONDS + 1:g} s: {said}"


def test_a_short_limit_holds_for_sleep_too() -> None:
    watched = Watched(JobClock(3.0, 0.0), Fake(), [Fake()])
    assert watched.until_stopped((0.0,)).startswith("4 s: stopped after 3 s in which")


def test_a_job_that_waits_and_says_so_has_longer_yet_not_for_ever(watched: Watched) -> None:
    said = f"stopped after {WALLS * 600} s, {WALLS} times what it may work"
    assert watched.until_stopped((0.0, 0.0), says=60.0) == f"{WALLS * 600 + 1} s: {said}"


def test_sleep_between_work_is_no_end(watched: Watched) -> None:
    for _ in range(4):
        assert watched.until_stopped((0.0, 0.0), most=watched.now + STILL_SECONDS - 1) == "never"
        assert watched.until_stopped((1.0, 0.0), most=watched.now + 1) == "never"


@pytest.mark.parametrize("told", [True, False])
def test_a_child_that_ended_is_neither_forgotten_nor_counted_twice(watched: Watched, told: bool) -> None:
    watched.until_stopped((0.5, 0.5), most=100.0)
    assert watched.clock.cpu == 100.0
    gone = watched.living.pop()
    if told:  # its parent took notice of its end
        watched.living[0].children = gone.own
    watched.look()
    assert watched.clock.cpu == 100.0
    watched.until_stopped((1.0,), most=150.0)
    assert watched.clock.cpu == 150.0
    watched.root.children = watched.living.pop().own + gone.own
    watched.look()
    assert watched.clock.cpu == 150.0


def test_what_a_job_before_took_hides_nothing_of_the_next_one() -> None:
    worker, first, second = Fake(own=20), Fake(own=50), Fake(own=50)
    watched = Watched(JobClock(60.0, 0.0), Fake(children=100), [worker])
    watched.clock.leave_out(cast(psutil.Process, watched.root), cast("list[psutil.Process]", watched.living))
    for child in (first, second):  # whose end goes unnoticed
        watched.living = [worker, child]
        watched.look()
    assert watched.clock.cpu == 100
