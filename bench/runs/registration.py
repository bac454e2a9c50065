"""Workers that others see, of which one may hold its machine alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from bench.plugins.spec import UsageError
from bench.results import lease, process_id
from bench.results.lease import Lease
from bench.results.queue import ALONE, Queue
from bench.runs.offer import Ends, pause
from bench.runs.terms import Terms

_LOOK_SECONDS = 2.0


@contextmanager
def registered(queue: Queue, terms: Terms, ends: Ends | None) -> Iterator[dict[str, str | bool]]:
    """Be a worker that others see, and hold the machine alone if that is wanted; gives what others may read.

    Raises:
        UsageError: Another worker holds the machine alone.
    """
    told: dict[str, str | bool] = {
        "host": socket.gethostname(), "hardware": process_id.hardware(), "alone": terms.alone,
        "devices": " ".join(sorted(terms.devices)), "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    machine = f"{ALONE}{process_id.hardware()}"
    queue.forget_workers()
    with ExitStack() as held:
        _hold(held, queue, process_id.own_name(), told, terms.seconds)
        while terms.alone and not _held_alone(held, queue, machine, told, terms.seconds):
            pause(ends, _LOOK_SECONDS)
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
