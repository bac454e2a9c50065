"""What a record speaks of, built again from what it says: its cell, and what was measured on it."""

from __future__ import annotations

from bench.plugins.chosen import choose
from bench.plugins.spec import UsageError
from bench.results.records import Record
from bench.types import NotApplicable
from bench.workbench.cell import Cell, Planned
from bench.workbench.inputs import record_inputs


def planned_of(record: Record) -> tuple[Cell, Planned]:
    """The cell and the evaluator.

    Raises:
        UsageError: Something that it names is not installed here, is a file of its author's, or takes a parameter that
            records do not show.
    """
    if files_of(record):
        raise UsageError("it was made with a file of its author's")
    cell = Cell.read({"method": record.method.written, "device": record.device, **record.choice})
    attack = None if record.attack is None else choose("attacks", record.attack.written, cell.choice.preset)
    metrics = tuple(sorted(metric.written for metric in record.metrics.values()))
    return cell, Planned(record.measured_by, attack, metrics)


def files_of(record: Record) -> list[str]:
    """Plug-ins of a record that are files, which nobody else has."""
    attack = [] if record.attack is None else [record.attack.written]
    metrics = [metric.written for metric in record.metrics.values()]
    written = [record.method.written, *attack, record.measured_by, *metrics]
    return [name for name in written if ".py:" in name]


def other_inputs(record: Record) -> list[str]:
    """The names of the inputs that would be others, were the record made here now.

    Raises:
        UsageError: As `planned_of`.
    """
    if record.dataset is None:
        return ["data"]
    cell, planned = planned_of(record)
    commitment = record.inputs.get("run secret commitment")
    try:
        now = record_inputs(cell, record.dataset, planned, commitment if isinstance(commitment, str) else None)
    except NotApplicable as reason:
        raise UsageError(str(reason)) from reason
    return [name for name in sorted({*now, *record.inputs}) if now.get(name) != record.inputs.get(name)]
