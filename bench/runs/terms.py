"""What a worker is started with."""

from __future__ import annotations

from dataclasses import dataclass

from bench.runs.needs import Needs


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
