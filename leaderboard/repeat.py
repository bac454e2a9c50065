"""The command that repeats a row, and what the row cost."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import cast

from bench.plugins import registry
from bench.plugins.spec import UsageError, parameters, parse, text, words
from bench.results.record_parts import PluginRecord
from bench.results.records import Record
from bench.types import Parameter
from bench.workbench.choice import Choice
from leaderboard.board import Row
from leaderboard.entries import short
from leaderboard.names import OWN


def command(row: Row) -> str:
    """The command line that repeats a row.

    Words in capitals stand for paths, which no record holds.
    """
    attacks = dict.fromkeys(record.attack.written for record in row.records if record.attack is not None)
    metrics = dict.fromkeys(metric.written for record in row.records for metric in record.metrics.values())
    files = dict.fromkeys(record.measured_by for record in row.records if ".py:" in record.measured_by)
    parts = method_and_choice(row.records[0])
    parts += [word for attack in (attacks or ["none"]) for word in ("--attack", attack)]
    parts += [word for evaluator in files for word in ("--evaluator", evaluator)]
    parts += [word for metric in metrics for word in ("--metric", metric)]
    return shlex.join(["bench", "run", *parts])


def method_and_choice(record: Record) -> list[str]:
    """Command-line words for a record's method, data choice and device."""
    method = as_today(record.method, record.preset)
    return ["--method", method, *words(Choice, record.choice), "--device", record.device]


def as_today(method: PluginRecord, preset: str) -> str:
    """A method as the command line takes it, with moved defaults.

    A method of others, or one that no longer exists, stands as it was written: a record may claim that a file is this
    project's, and no file of others is run here.
    """
    if method.origin != OWN or ".py:" in method.written:
        return method.written
    try:
        written = parse(method.written)
        if written.name not in registry.own("methods"):
            return method.written
        now = parameters(registry.build("methods", written, preset))
    except UsageError:
        return method.written
    ran = cast("dict[str, Parameter]", method.parameters)
    moved = [(name, ran[name]) for name in now if name in ran and text(ran[name]) != text(now[name])]
    return str(replace(written, parameters=(*written.parameters, *moved)))


_MINUTE, _HOUR = 60, 3600


def cost(row: Row) -> str:
    """The cost of a row in words; empty without recorded times.

    A training counts once. Jobs count by processor seconds on a CPU, and by wall-clock seconds on another device.
    """
    parts = []
    fits = [record.seconds["fit"] for record in row.records if "fit" in record.seconds]
    if fits:
        parts.append(f"training {lasting(fits[0])}")
    attacks = [(record.seconds["attack"], record.evaluator) for record in row.records if "attack" in record.seconds]
    if attacks:
        longest, name = max(attacks)
        parts.append(f"the longest attack {lasting(longest)} ({short(name)})")
    devices = {record.device for record in row.records}
    if len(devices) == 1:
        (device,) = devices
        clock, unit = ("cpu", "processor") if device == "cpu" else ("wall", "device")
        jobs = sum(record.seconds.get(clock, 0.0) for record in row.records)
        if jobs:
            parts.append(f"all jobs {lasting(jobs)} of {unit} time on {device}")
    return ", ".join(parts)


def lasting(seconds: float) -> str:
    """Seconds in the unit that people would use.

    >>> lasting(4.26), lasting(64), lasting(5400), lasting(0.012)
    ('4.3 s', '1.1 min', '1.5 h', '0.012 s')
    """
    if seconds >= _HOUR:
        return f"{seconds / _HOUR:.1f} h"
    return f"{seconds / _MINUTE:.1f} min" if seconds >= _MINUTE else f"{seconds:.2g} s"
