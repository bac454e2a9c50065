"""What a row cost to make, in a sentence: its training, its longest attack, and all of its jobs."""

from __future__ import annotations

from leaderboard.board import Row
from leaderboard.entries import short

_MINUTE, _HOUR = 60, 3600


def cost(row: Row) -> str:
    """The sentence; empty where the records say nothing of it.

    A training counts once, whenever it was done. On a CPU all jobs count by seconds of the processor, on a device that
    a job has for itself by those on the wall.
    """
    said = []
    fits = [record.seconds["fit"] for record in row.records if "fit" in record.seconds]
    if fits:
        said.append(f"training {lasting(fits[0])}")
    attacks = [(record.seconds["attack"], record.evaluator) for record in row.records if "attack" in record.seconds]
    if attacks:
        longest, name = max(attacks)
        said.append(f"the longest attack {lasting(longest)} ({short(name)})")
    devices = {record.device for record in row.records}
    if len(devices) == 1:
        (device,) = devices
        clock, unit = ("cpu", "processor") if device == "cpu" else ("wall", "device")
        jobs = sum(record.seconds.get(clock, 0.0) for record in row.records)
        if jobs:
            said.append(f"all jobs {lasting(jobs)} of {unit} time on {device}")
    return ", ".join(said)


def lasting(seconds: float) -> str:
    """Seconds in the unit that people would use.

    >>> lasting(4.26), lasting(64), lasting(5400), lasting(0.012)
    ('4.3 s', '1.1 min', '1.5 h', '0.012 s')
    """
    if seconds >= _HOUR:
        return f"{seconds / _HOUR:.1f} h"
    return f"{seconds / _MINUTE:.1f} min" if seconds >= _MINUTE else f"{seconds:.2g} s"
