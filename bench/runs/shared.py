"""Jobs of a planned run that several workers do together, each claiming those that nobody else is at.

Every worker goes through the same plan by the same scheduler (`bench.runs.run.execute`), and this stands before its own
workers: what another has done is handed over as done, what is free is claimed, done here, and said to be done once its
record is in place. Workers never speak to one another; what they share is `bench.results.queue.Queue`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

from pydantic import JsonValue, ValidationError

from bench.results.lease import Lease
from bench.results.queue import Ended, Queue, job_file
from bench.results.reason import ABSENT
from bench.results.records import DatasetRecord
from bench.runs.answers import Fitted, Opened
from bench.runs.backend import Backend, Job, Outcome
from bench.runs.offer import DiskFailureError, Offer, TimeUpError
from bench.runs.planned_run import DATA, FIT
from bench.runs.restricted import restricted_fit

MOST_TURNS, MOST_TRIES = 8, 100
"""A job that so many workers in a row were lost at is not given to another: it may be what ends them. Those that were
told to stop, as where others may take their machine, count only among all tries."""
_FIRST_WAIT, _MOST_WAIT = 0.2, 5.0
_MOST_CLAIMS = 8
_GRACE_SECONDS = 1.0


@dataclass
class _Held:
    job: Job
    lease: Lease
    beats: ExitStack
    ended: tuple[str, Mapping[str, JsonValue]] | None = None  # None: another may try


class Shared:
    """The jobs of a plan (a `bench.runs.backend.Backend`, and its `bench.runs.ledger.Ledger`).

    Args:
        queue: What the workers share.
        plan: The name of the plan.
        offer: What this worker is.
        inner: Makes what does the jobs here, from a function to call while they run.
        known: What a choice of data came to, by its key.
    """

    shared = True

    def __init__(
        self, queue: Queue, plan: str, offer: Offer, inner: Callable[[Callable[[], None]], Backend],
        known: Callable[[str], DatasetRecord | None],
    ) -> None:  # fmt: skip
        self._queue, self._plan, self._offer, self._known = queue, plan, offer, known
        self._inner = inner(self._in_time)
        self._waiting: dict[str, Job] = {}
        self._able: dict[int, set[str]] = {}  # what this worker may do of it, what it does first by the lowest number
        self._held: _Held | None = None
        self._ended = queue.ended(plan)
        self._elsewhere: list[str] = []
        self._chance = random.SystemRandom()
        self.done = 0
        self.left = 0
        self.told_to_stop = False

    def submit(self, job: Job) -> None:
        """Queue a job."""
        file = job_file(job.key)
        self._waiting[file] = job
        if self._offer.suits(job):
            self._able.setdefault(self._offer.rank(job), set()).add(file)
        if file in self._ended:
            self._elsewhere.append(file)

    def next(self) -> tuple[Job, Outcome] | None:
        """The next job that is done, here or elsewhere; None when nothing is left that this worker could ever do.

        Raises:
            TimeUpError: The worker's time is over.
            DiskFailureError: No job can be done on this machine.
        """
        self._settle()
        idle, wait = time.monotonic(), _FIRST_WAIT
        while self._wanted():
            self._in_time()
            if (told := self._told()) is not None:
                return told
            if (held := self._claimed()) is not None:
                return held.job, self._worked(held)
            self._look()
            if self._elsewhere:
                continue
            ever = any(self._offer.fits(self._waiting[file]) for files in self._able.values() for file in files)
            if not ever or not self._offer.patient(time.monotonic() - idle):
                break
            time.sleep(wait * self._chance.uniform(0.5, 1.0))
            wait = min(2 * wait, _MOST_WAIT)
        self.left = self._wanted()
        return None

    def close(self) -> None:
        """Stop what is running, and give it back."""
        self._inner.close()
        if self._held is not None:
            held, self._held = self._held, None
            held.beats.close()
            held.lease.give_back(told_to_stop=self.told_to_stop)

    def settled(self, job: str) -> bool:
        """As in `bench.runs.ledger.Ledger`."""
        return job_file(job) in self._ended

    def settle(self, job: str, *, failed: bool = False) -> None:
        """As in `bench.runs.ledger.Ledger`."""
        if not self.settled(job):
            self._queue.end(self._plan, job_file(job), "failed" if failed else "done", {})

    def at_a_time(self) -> int:
        """As in `bench.runs.ledger.Ledger`: every worker of this machine does one job."""
        return max(1, sum(told.get("hardware") == self._offer.told["hardware"] for told in self._queue.living()))

    def _wanted(self) -> int:
        """How many jobs there are that this worker waits for."""
        if self._offer.prepares:
            return sum(job.prepares for job in self._waiting.values())
        return len(self._waiting)

    def _look(self) -> None:
        """Look what has ended elsewhere."""
        self._ended = self._queue.ended(self._plan)
        self._elsewhere = [*self._ended.intersection(self._waiting)]

    def _told(self) -> tuple[Job, Outcome] | None:
        """A job that was waited for, and that another has done."""
        while self._elsewhere:
            file = self._elsewhere.pop()
            job = self._waiting.get(file)
            if job is not None and (outcome := self._outcome(job, file)) is not None:
                self._taken_off(file)
                return job, outcome
        return None

    def _outcome(self, job: Job, file: str) -> Outcome | None:
        """What a job came to elsewhere, with what its followers need; None where that is not to be had."""
        if not job.key.startswith((DATA, FIT)):  # its record says the rest
            return Outcome("ok", None, None, None, None, 0.0, elsewhere=True)
        ended = self._queue.outcome(self._plan, file)
        value = None if ended is None or ended.state != "done" else self._value(job, ended)
        if value is None and (ended is None or ended.state == "done"):
            self._queue.reopen(self._plan, file)  # what is there cannot be used: it is done again
            self._ended.discard(file)
            return None
        if value is None:
            return Outcome("failed", None, "error", None, None, 0.0, elsewhere=True)
        return Outcome("ok", value, None, None, None, 0.0, elsewhere=True)

    def _value(self, job: Job, ended: Ended) -> Opened | Fitted | None:
        if job.key.startswith(DATA):
            data = self._known(job.key.removeprefix(DATA))
            return None if data is None else Opened(data=data)
        try:
            return Fitted.model_validate(ended.told["fitted"])
        except (KeyError, ValidationError):
            return None

    def _claimed(self) -> _Held | None:
        """A job that is ours now: one that wants the machine alone if we have it so, else one that measures."""
        for file in self._free():
            job = self._waiting[file]
            if self._queue.has_ended(self._plan, file):  # since we looked
                return None
            now = datetime.now(UTC).isoformat(timespec="seconds")  # to be read: nothing is decided by it
            told = {**self._offer.told, "job": job.key, "title": job.name, "claimed": now}
            lease = self._queue.claim(file, told, seconds=self._offer.seconds)
            if lease is None:
                continue
            if self._queue.has_ended(self._plan, file):  # just now
                lease.settle()
                continue
            beats = ExitStack()
            beats.enter_context(lease.kept(self._offer.seconds))
            self._taken_off(file)
            self._held = _Held(job, lease, beats)
            return self._held
        return None

    def _free(self) -> list[str]:
        """A few jobs that nobody is at: not the same for all workers, or they would all run for one."""
        taken = self._queue.taken()
        for rank in sorted(self._able):
            able = self._able[rank] - self._ended
            if self._offer.ends is not None:
                able = {file for file in able if self._offer.fits(self._waiting[file])}
            free = able - taken
            if not free:  # only then is it worth a look who of the others is lost
                free = {file for file, found in self._queue.holders(able & taken).items() if found.lost}
            if free:
                return self._chance.sample([*free], min(len(free), _MOST_CLAIMS))
        return []

    def _taken_off(self, file: str) -> None:
        job = self._waiting.pop(file)
        self._able.get(self._offer.rank(job), set()).discard(file)

    def _worked(self, held: _Held) -> Outcome:
        """What the job comes to that we hold."""
        if held.lease.lost >= MOST_TURNS or held.lease.turn > MOST_TRIES:
            reason = f"{held.lease.turn - 1} workers in a row ended or were lost while they did it"
            outcome = Outcome("failed", None, "died", reason, "start", 0.0)
        else:
            self._inner.submit(held.job)
            finished = self._inner.next()
            assert finished is not None, "what was submitted comes back"
            outcome = finished[1]
            if outcome.code == "died":
                # Who ends this worker and all that it started may have ended the job first: then the signal comes now.
                time.sleep(_GRACE_SECONDS)
            elif outcome.code == "disk":  # here every job would fail, and fast: this worker would soon have failed all
                raise DiskFailureError(
                    f"{held.job.name} is given back, for a disk of this machine is full or out of reach "
                    f"({outcome.reason}): make room where the results, the cache and temporary files lie, and start "
                    "the worker again"
                )
        told: dict[str, JsonValue] = {
            "title": held.job.name, "status": outcome.status, "seconds": outcome.seconds, "code": outcome.code,
            "host": self._offer.told["host"],
        }  # fmt: skip
        if isinstance(outcome.value, Fitted):
            fitted = restricted_fit(outcome.value) if held.job.restricted else outcome.value
            told["fitted"] = cast(JsonValue, fitted.model_dump(mode="json"))
        fit = held.job.key.startswith(FIT)  # without it, nothing of the cell can be done
        states = {"ok": "done", "not-applicable": "not-applicable" if fit else "done"}
        state = states.get(outcome.status, "failed")
        # Data that are not here may be there: another worker tries.
        absent = held.job.key.startswith(DATA) and outcome.code in ABSENT
        held.ended = None if absent else (state, told)
        if outcome.status != "ok" and not self._is_ours(held):  # whoever has it now will say what it comes to
            return replace(outcome, elsewhere=True)
        return outcome

    def _settle(self) -> None:
        """Say what became of the job that was handed out last: what it came to is in place by now."""
        if self._held is None:
            return
        held, self._held = self._held, None
        held.beats.close()
        if held.ended is not None:
            if held.ended[0] == "failed" and not self._is_ours(held):
                return
            self._queue.end(self._plan, job_file(held.job.key), *held.ended)
            self.done += 1
        held.lease.settle()

    def _is_ours(self, held: _Held) -> bool:
        """Whether we were not taken for lost in the meantime."""
        try:
            return held.lease.is_held()
        except OSError:  # the folder is out of reach: nothing can be said of the job either
            return False

    def _in_time(self) -> None:
        """Raise TimeUpError where it is time to stop."""
        if self._offer.ends is not None and time.monotonic() >= self._offer.ends[0]:
            raise TimeUpError
