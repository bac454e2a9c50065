"""Whether a record was computed by the code that is installed here: what it would be keyed by now, against its own."""

from __future__ import annotations

from bench.plugins import registry
from bench.plugins.chosen import choose
from bench.plugins.groups import Group
from bench.plugins.spec import UsageError
from bench.results.records import PluginRecord, Record
from bench.wire.text import line
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.inputs import COMMITMENT, record_inputs

ELSEWHERE = frozenset({"torch"})  # an input that says where a record was made, not by which of our code


def planned_of(record: Record) -> tuple[Cell, Planned]:
    """What a record speaks of, built again from what it says: its cell, and what was measured on it.

    Raises:
        UsageError: Something that it names is not installed here, is a file of its author's, or takes a parameter that
            records do not show.
    """
    cell = Cell(choose("methods", record.method.written, record.preset), Choice.read(record.choice), record.device)
    attack = None if record.attack is None else choose("attacks", record.attack.written, record.preset)
    return cell, Planned(record.measured_by, attack, tuple(metric.written for metric in record.metrics.values()))


def stale(record: Record) -> str:
    """Why the installed code would not make this record, in words; empty where it would.

    It lacks a plug-in, or whatever else the record needs (a weight file of its author's), or something behind the
    record is not as it is here (code, protocol, sizes), by the names that its inputs give it.
    """
    if record.dataset is None:
        return ""
    if absent := _absent(record):
        return f"not installed here: {', '.join(absent)}"
    try:
        cell, planned = planned_of(record)
        commitment = record.inputs.get(COMMITMENT)
        now = record_inputs(cell, record.dataset, planned, commitment if isinstance(commitment, str) else None)
    except UsageError as error:
        return f"what it was made with cannot be had here: {error}"
    names = sorted((now.keys() | record.inputs.keys()) - ELSEWHERE)
    differ = [name for name in names if now.get(name) != record.inputs.get(name)]
    return f"other than what is installed here: {', '.join(differ)}" if differ else ""


def _absent(record: Record) -> list[str]:
    """The record's method and attack, each with its package, as far as no installed package has them."""
    plugins: list[tuple[Group, PluginRecord | None]] = [("methods", record.method), ("attacks", record.attack)]
    return [
        f"{registry.noun(group)} {line(plugin.name)} of the package {line(plugin.origin)}"
        for group, plugin in plugins
        if plugin is not None and ".py:" not in plugin.written and plugin.name not in registry.entries(group)
    ]


def files_of(record: Record) -> list[str]:
    """What a record names that is a file of its author's (`FILE.py:CLASS`): plug-ins, and choices of data."""
    attack = [] if record.attack is None else [record.attack.written]
    metrics = [metric.written for metric in record.metrics.values()]
    chosen = [value for value in record.choice.values() if isinstance(value, str)]
    written = [record.method.written, *attack, record.measured_by, *metrics, *chosen]
    return [name for name in written if ".py:" in name]
