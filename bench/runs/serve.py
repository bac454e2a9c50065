"""The life of a worker: it takes jobs of planned runs from a results folder until none is left, or its time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from bench.isolation import find_isolation, remove_unused
from bench.plugins.spec import UsageError
from bench.results.queue import Queue, job_file
from bench.results.signing_key import SigningKey
from bench.runs.backend import Backend
from bench.runs.display import Display
from bench.runs.imported import imported
from bench.runs.offer import Ends, Offer, TimeUpError, pause
from bench.runs.plan import work
from bench.runs.planned_run import PlannedRun, jobs_of, read_run, run_spec
from bench.runs.registration import registered
from bench.runs.run import execute
from bench.runs.shared import Shared
from bench.runs.terms import Terms
from bench.runs.workers import Workers
from bench.workbench.machine import memory, usable_memory
from bench.workbench.place import Place

_LOOK_SECONDS = 2.0
_ROUND_SECONDS = 3.0  # with more than one plan: so long a worker waits in one before it looks at the next


@dataclass
class Served:
    """What a worker came to.

    Args:
        done: Jobs that it did.
        left: Those that it may not do.
        time_up: Whether it ended because its time was over.
        stopped: What told it to stop.
        suits: Plans that it has looked at, and whether it does jobs of them; of others it has said why not.
    """

    done: int = 0
    left: int = 0
    time_up: bool = False
    stopped: KeyboardInterrupt | None = None
    suits: dict[str, bool] = field(default_factory=dict)


def serve(terms: Terms, place: Place, display: Display, signer: SigningKey | None = None) -> Served:
    """Take jobs until none is left that this worker may do.

    Raises:
        UsageError: There is no plan, the machine is held by another worker, or a plan names what is not here.
        DiskFailureError: A disk of this machine is full or out of reach.
    """
    queue, served = place.results.queue, Served()
    began = time.monotonic()
    ends = None if terms.minutes is None else (began + 60 * terms.minutes, 60 * terms.minutes)
    try:
        with registered(queue, terms, ends) as told:
            _go_on(queue, terms, place, display, signer, served, told, ends)
    except TimeUpError:
        served.time_up = True
    return served


def _go_on(
    queue: Queue, terms: Terms, place: Place, display: Display, signer: SigningKey | None, served: Served,
    told: Mapping[str, str | bool], ends: Ends | None,
) -> None:  # fmt: skip
    """Go from plan to plan."""
    idle = time.monotonic()
    while True:
        unfinished, before = list(_unfinished(queue, terms, display, served)), served.done
        served.left = 0
        for planned in unfinished:
            patient = _patience(terms, alone=len(unfinished) == 1)
            offer = Offer(
                terms.devices, terms.alone, told, terms.seconds, ends, patient, _only(terms, planned), terms.prepares
            )
            _serve(planned, offer, terms, place, display, signer, served)
            if served.stopped is not None:
                return
        if served.done > before:
            idle = time.monotonic()
        if not _waits(terms, time.monotonic() - idle, others=served.left > 0 and _at_work(queue)):
            break
        pause(ends, _LOOK_SECONDS)
    for name in queue.plans():
        queue.forget_leases(name)
    queue.forget_workers()
    if not (plans := queue.plans()):
        raise UsageError(f"{place.results.root} has no planned run: bench run --executor none writes one")
    if not any(served.suits.get(name, True) for name in plans):
        raise UsageError("this worker can do nothing of the plans here: why not stands above")


def _serve(
    planned: PlannedRun, offer: Offer, terms: Terms, place: Place, display: Display, signer: SigningKey | None,
    served: Served,
) -> None:  # fmt: skip
    most = planned.memory or terms.memory or int(usable_memory())
    spec = run_spec(planned, memory=most)
    find_isolation(spec.isolation)  # what was asked for must be had here, too
    roots = place.roots or planned.data_roots
    here = Place(place.results, place.cache, roots)

    more = imported(work(spec), place.results)

    def inner(look: Callable[[], None]) -> Backend:
        return Workers(jobs=1, memory=most, notify=display.progress, look=look, threads=terms.cores, imported=more)

    shared = Shared(place.results.queue, planned.name, offer, inner, place.results.journal.data)
    try:
        with closing(shared):
            served.stopped = execute(spec, here, display, shared, signer, shared).stopped
            shared.told_to_stop = served.stopped is not None
    finally:
        served.done += shared.done
        served.left += shared.left
        remove_unused(place.results.rooms)


def _unfinished(queue: Queue, terms: Terms, display: Display, served: Served) -> Iterator[PlannedRun]:
    """Plans of which something is left that can be done here; of others it is said why not, and once."""
    for name in queue.plans():
        if not served.suits.get(name, True):
            continue
        try:
            planned = read_run(queue, name)
            if not {job_file(each.job) for each in planned.jobs} - queue.ended(name):
                continue
            reason = None if name in served.suits else _refused(planned, terms)
        except FileNotFoundError:  # forgotten just now
            continue
        except ValueError as error:  # altered, or of another version
            reason = str(error)
        served.suits[name] = reason is None
        if reason is None:
            yield planned
        else:
            display.message(f"plan {name} is left to other workers: {reason}")


def _refused(planned: PlannedRun, terms: Terms) -> str | None:
    """Why nothing of a plan can be done by this worker; None where nothing stands against it."""
    if planned.memory is not None and planned.memory > (here := terms.memory or memory()):
        return f"its jobs may hold {planned.memory / 2**30:.1f} GiB each (--memory), and here are {here / 2**30:.1f}"
    if jobs_of(planned) != {each.job for each in planned.jobs}:
        return "this version of Veil Bench makes other jobs of it; plan the run again with this one, or update it"
    return None


def _only(terms: Terms, planned: PlannedRun) -> frozenset[str] | None:
    """The jobs of a plan that a worker was started for; None for all."""
    if (only := terms.only) is None:
        return None
    return frozenset(each.job for each in planned.jobs if only.covers(each.needs, prepares=each.prepares))


def _patience(terms: Terms, *, alone: bool) -> Callable[[float], bool]:
    """Whether a worker that has found nothing for so many seconds still waits in a plan: its only one, or not."""
    if not alone:
        return lambda seconds: seconds < _ROUND_SECONDS
    if terms.idle_minutes is None:
        return lambda seconds: True
    most = 60 * terms.idle_minutes
    return lambda seconds: seconds < most


def _waits(terms: Terms, idle: float, *, others: bool) -> bool:
    """Whether a worker that is through with all plans looks again."""
    return others if terms.idle_minutes is None else idle < 60 * terms.idle_minutes


def _at_work(queue: Queue) -> bool:
    return any(not found.lost for found in queue.holders().values())
