"""The clock of a job: processor time and signs of life.

A loaded machine must not cost a job its result, so the wall is no measure. A job's time is the processor time of all
its processes, at most a second each second. Parallel threads make it shorter; waiting for a busy accelerator counts,
because it keeps a core busy. A job ends at the first of these:

- its time is over its limit;
- for `STILL_SECONDS` (or its limit, if that is shorter) it has neither used a thousandth of a core nor reported its
  stage;
- `WALLS` times its limit has gone by on the wall: it reports stages but does not finish.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import psutil

STILL_SECONDS = 300.0
WALLS = 10
_SHARE = 0.001  # of a core: waking up ten times a second takes less
_TICK = 1.0


@dataclass
class JobClock:
    """The clock of a job.

    Args:
        limit: Seconds that it may work.
        started: When it began, on the clock that `look` is given.
    """

    limit: float
    started: float
    cpu: float = 0.0
    _before: tuple[float, float] = (0.0, 0.0)
    _worked: float = 0.0
    _ticked: float = 0.0
    _ticked_cpu: float = 0.0
    _moved: float = 0.0
    _moved_cpu: float = 0.0
    _own: dict[psutil.Process, float] = field(default_factory=dict)

    def look(self, now: float, root: psutil.Process | None, living: Iterable[psutil.Process]) -> None:
        """Read the processor times of the processes below `root`."""
        # Unreaped children are missing in the one sum, brief ones in the other.
        spent = self._spent(root, living)
        self.cpu = max(self.cpu, *(taken - before for taken, before in zip(spent, self._before, strict=True)))
        wall = now - self.started
        if wall - self._ticked >= _TICK:
            self._worked += min(wall - self._ticked, self.cpu - self._ticked_cpu)
            self._ticked, self._ticked_cpu = wall, self.cpu
            if self.cpu - self._moved_cpu >= _SHARE * (wall - self._moved):
                self._moved, self._moved_cpu = wall, self.cpu

    def leave_out(self, root: psutil.Process, living: Iterable[psutil.Process]) -> None:
        """Leave out what these processes have computed so far, for another job."""
        self._before = self._spent(root, living)

    def _spent(self, root: psutil.Process | None, living: Iterable[psutil.Process]) -> tuple[float, float]:
        """Processor time by the system's sum, and by processes seen here."""
        ended = 0.0 if root is None else _ended(root)
        for process in living:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                self._own[process] = times.user + times.system
                ended += self._own[process] + times.children_user + times.children_system
        return ended, sum(self._own.values())

    def said(self, now: float) -> None:
        """The job has said where it is."""
        self._moved, self._moved_cpu = now - self.started, self.cpu

    def overdue(self, now: float) -> str | None:
        """Why the job ends here; None if it may go on."""
        wall, still = now - self.started, min(STILL_SECONDS, self.limit)
        if self._worked > self.limit:
            return f"stopped after {self.limit:g} s of processor time"
        if wall - self._moved > still:
            return f"stopped after {still:g} s in which it neither computed nor said where it is"
        if wall > WALLS * self.limit:
            return f"stopped after {WALLS * self.limit:g} s, {WALLS} times what it may work"
        return None


def _ended(root: psutil.Process) -> float:
    """Processor time of the processes that ended below it."""
    with contextlib.suppress(psutil.Error):
        times = root.cpu_times()
        return float(times.children_user + times.children_system)
    return 0.0
