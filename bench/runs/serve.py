"""The life of a worker: it takes jobs of planned runs from a results folder until none is left, or its time is over."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from bench.isolation import find_isolation, remove_unused
from bench.plugins.spec import UsageError
from bench.results import lease, maker
from bench.results.lease import Lease
from bench.results.queue import ALONE, Queue, job_file
from bench.results.signing_key import SigningKey
from bench.runs.backend import Backend
from bench.runs.display import Display
from bench.runs.needs import Needs
from bench.runs.offer import Offer, TimeUpError
from bench.runs.planned_run import PlannedRun, read_run, run_spec
from bench.runs.run import execute
from bench.runs.shared import Shared
from bench.runs.workers import Workers
from bench.workbench.machine import usable_memory
from bench.workbench.place import Place

_LOOK_SECONDS = 2.0
_ROUND_SECONDS = 3.0  # with more than one plan: so long a worker waits in one before it looks at the next


@dataclass(frozen=True)
class Terms:
    """What a worker was started with.

    Args:
        devices: Kinds of device whose jobs it does.
        alone: It is to hold its machine alone, and may do timings.
        minutes: After so long it stops; None for no limit.
        idle_minutes: So long it waits where nothing is to do; None: while others are at jobs, and no longer.
        seconds: For how long it may be silent before another takes its job.
        cores: With so many threads a job computes; None for as many as there are cores.
        memory: Bytes that a job may hold where its plan does not say; None for most of the machine's.
        only: The resource class whose jobs it does; None for all.
        prepares: It ends when no job is left that others wait for.
    """

    devices: frozenset[str]
    alone: bool
    minutes: float | None
    idle_minutes: float | None
    seconds: float
    cores: int | None
    memory: int | None
    only: Needs | None = None
    prepares: bool = False


@dataclass
class Served:
    """What a worker came to."""

    done: int = 0
    left: int = 0
    time_up: bool = False
    stopped: KeyboardInterrupt | None = None


def serve(terms: Terms, place: Place, display: Display, signer: SigningKey | None = None) -> Served:
    """Take jobs until none is left that this worker may do.

    Raises:
        UsageError: There is no plan, the machine is held by another worker, or a plan names what is not here.
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
    told: Mapping[str, str | bool], ends: tuple[float, float] | None,
) -> None:  # fmt: skip
    """Go from plan to plan."""
    idle = time.monotonic()
    while True:
        unfinished, before = list(_unfinished(queue)), served.done
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
        _sleep(ends)
    for name in queue.plans():
        queue.forget_leases(name)
    if not queue.plans():
        raise UsageError(f"{place.results.root} has no planned run: bench run --executor none writes one")


def _serve(
    planned: PlannedRun, offer: Offer, terms: Terms, place: Place, display: Display, signer: SigningKey | None,
    served: Served,
) -> None:  # fmt: skip
    memory = planned.memory or terms.memory or int(usable_memory())
    spec = run_spec(planned, memory=memory)
    find_isolation(spec.isolation)  # what was asked for must be had here, too
    roots = place.roots or planned.data_roots
    here = Place(place.results, place.cache, roots)

    def inner(look: Callable[[], None]) -> Backend:
        return Workers(jobs=1, memory=memory, notify=display.progress, look=look, threads=terms.cores)

    shared = Shared(place.results.queue, planned.name, offer, inner, place.results.data)
    try:
        with closing(shared):
            served.stopped = execute(spec, here, display, shared, signer, shared).stopped
    finally:
        served.done += shared.done
        served.left += shared.left
        remove_unused(place.results.rooms)


@contextmanager
def registered(queue: Queue, terms: Terms, ends: tuple[float, float] | None) -> Iterator[dict[str, str | bool]]:
    """Be a worker that others see, and hold the machine alone if that is wanted; gives what others may read.

    Raises:
        UsageError: Another worker holds the machine alone.
    """
    told: dict[str, str | bool] = {
        "host": socket.gethostname(), "hardware": maker.hardware(), "alone": terms.alone,
        "devices": " ".join(sorted(terms.devices)), "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    machine = f"{ALONE}{maker.hardware()}"
    queue.forget_workers()
    with ExitStack() as held:
        _hold(held, queue, maker.own_name(), told, terms.seconds)
        while terms.alone and not _held_alone(held, queue, machine, told, terms.seconds):
            _sleep(ends)
        if not terms.alone and (other := _holder(queue, machine)) is not None:
            raise UsageError(
                f"a worker on {other['host']} holds this machine alone, for timings, since {other['since']}: start "
                "this one when it has ended, or on another machine"
            )
        yield told


def _held_alone(
    held: ExitStack, queue: Queue, machine: str, told: dict[str, str | bool], seconds: float
) -> Lease | None:
    """The lease of the machine, unless another has it, or workers run there that want no machine for themselves."""
    if _others(queue, told):
        return None
    with ExitStack() as tried:
        found = _hold(tried, queue, machine, told, seconds)
        if found is not None and not _others(queue, told):  # who came in between sees the lease, or is seen here
            held.push(tried.pop_all())
            return found
    return None


def _others(queue: Queue, told: dict[str, str | bool]) -> bool:
    return any(each.get("hardware") == told["hardware"] and not each.get("alone") for each in queue.living())


def _holder(queue: Queue, machine: str) -> lease.Told | None:
    """Who holds a machine alone, if anybody does."""
    turns = lease.turns(queue.workers).get(machine)
    if turns is None:
        return None
    found = lease.holder(queue.workers, machine, turns, queue.time())
    return None if found.lost or not found.told else found.told


def _hold(held: ExitStack, queue: Queue, name: str, told: dict[str, str | bool], seconds: float) -> Lease | None:
    found = lease.claim(queue.workers, name, told, seconds=seconds)
    if found is not None:
        held.callback(found.settle)
        held.enter_context(found.kept(seconds))
    return found


def _unfinished(queue: Queue) -> Iterator[PlannedRun]:
    for name in queue.plans():
        with contextlib.suppress(FileNotFoundError):  # forgotten just now
            planned = read_run(queue, name)
            if {job_file(each.job) for each in planned.jobs} - queue.ended(name):
                yield planned


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


def _sleep(ends: tuple[float, float] | None) -> None:
    if ends is not None and time.monotonic() >= ends[0]:
        raise TimeUpError
    time.sleep(_LOOK_SECONDS)
