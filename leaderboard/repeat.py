"""How to repeat a row of the board."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import cast

from bench.plugins import registry
from bench.plugins.option import words
from bench.plugins.spec import UsageError, parameters, parse, text
from bench.results.record_parts import PluginRecord
from bench.results.records import Record
from bench.types import Parameter
from bench.workbench.choice import Choice
from leaderboard.board import Row
from leaderboard.method_label import OWN


def command(row: Row) -> str:
    """The command line that repeats a row: its method, the choice of data, its attacks and its metrics.

    Words in capitals stand for paths, which no record holds.
    """
    attacks = dict.fromkeys(record.attack.written for record in row.records if record.attack is not None)
    metrics = dict.fromkeys(metric.written for record in row.records for metric in record.metrics.values())
    files = dict.fromkeys(record.measured_by for record in row.records if ".py:" in record.measured_by)
    told = method_and_choice(row.records[0])
    told += [word for attack in (attacks or ["none"]) for word in ("--attack", attack)]
    told += [word for evaluator in files for word in ("--evaluator", evaluator)]
    told += [word for metric in metrics for word in ("--metric", metric)]
    return shlex.join(["bench", "run", *told])


def method_and_choice(record: Record) -> list[str]:
    """The words of a command line that name a record's method, its choice of data and its device."""
    return [
        "--method",
        as_today(record.method, record.preset),
        *words(Choice, record.choice),
        "--device",
        record.device,
    ]


def as_today(method: PluginRecord, preset: str) -> str:
    """A method as the command line takes it, with every parameter at which it ran and that is another by default now.

    A method from outside this project, or that there is no longer, stands as it was written: a record may say of a file
    that it is this project's, and nobody's files are run here.
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
