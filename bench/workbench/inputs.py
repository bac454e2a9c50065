"""Content keys: all that schemes, releases and records depend on.

Drawing, messages, progress, registry, specs, records and the store are no part of a key (`bench.plugins.code_digest`);
nor is how rows were prepared and read, for their fingerprints say what came of it.
"""

from __future__ import annotations

__figures__ = False

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any, cast

from pydantic import JsonValue

from bench.isolation.call_shape import FORM
from bench.plugins import registry
from bench.plugins.code_digest import code_digest, plugin_digest, registered_digest
from bench.plugins.configured import Configured, configure, to_fit
from bench.plugins.groups import Group
from bench.plugins.spec import UsageError, parse, told_parameters
from bench.plugins.third_party import is_outside
from bench.randomness import Secret
from bench.results.records import (
    CHOICE,
    METRIC,
    DatasetRecord,
    PluginRecord,
    Record,
    data_inputs,
    plugin_inputs,
    reader_inputs,
    shown_inputs,
)
from bench.results.results import Results
from bench.results.signed_json import content_key
from bench.types import Method
from bench.wire.text import line
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice

PROTOCOL = 4
COMMITMENT = "run secret commitment"
SPLITS = "bench.workbench.open_data:open_data"
RELEASE = "bench.workbench.workbench:Workbench"
JUDGE = "bench.runs.judge:judge"
RECORDED = ("bench.data.release_folder:open_folder", "bench.data.recorded_rows:RecordedRows")
"""The reading of releases by other tools, which only records of their rows depend on."""


def plugin_record(chosen: Configured[Any]) -> PluginRecord:
    """A method or attack as it runs."""
    plugin = chosen.plugin
    return PluginRecord(
        name=plugin.name,
        written=chosen.shown,
        parameters=cast(dict[str, JsonValue], told_parameters(plugin)),
        source=plugin.source,
        code=plugin_digest(plugin),
        origin=chosen.origin,
        role=vars(type(plugin)).get("role")
        if chosen.origin == registry.HOME
        else None,  # a method derived from a reference method is none itself
    )


def fit_inputs(cell: Cell, data: DatasetRecord, *, apart: bool) -> dict[str, JsonValue]:
    """All that a fitted scheme depends on, before `Method.load`.

    `apart` says that the method works in a process of its own: what it made elsewhere is not taken for that.
    """
    known = _method_inputs(cell, data, to_fit(cell.method.plugin))
    # A method is fitted on public rows: which of the others Eve holds makes no difference.
    rows = {part: count for part, count in data.rows.items() if part not in ("private", "candidates")}
    chosen = {name: value for name, value in cell.choice.keyed().items() if name != "eve"}
    return {**known, "rows": cast(JsonValue, rows), CHOICE: cast(JsonValue, chosen), "method apart": apart}


def _method_inputs(cell: Cell, data: DatasetRecord, method: Method) -> dict[str, JsonValue]:
    values = cast(dict[str, JsonValue], told_parameters(method))
    return {
        **plugin_inputs("method", name=method.name, parameters=values, code=plugin_digest(method)),
        **data_inputs(data),
        "protocol": PROTOCOL,
        "splits code": code_digest(SPLITS),
        **({} if cell.choice.rows_of is None else {"reading code": code_digest(*RECORDED)}),
        CHOICE: cast(dict[str, JsonValue], cell.choice.keyed()),
        "device": cell.device,
        "torch": version("torch"),
    }


def _form(cell: Cell) -> dict[str, JsonValue]:
    """The version of the form in which another author's method gets rows."""
    return {"call form": FORM} if is_outside("methods", cell.method.spec) else {}


def cell_identity(cell: Cell, data: DatasetRecord) -> dict[str, JsonValue]:
    """Everything that distinguishes a cell, with fingerprints of its data."""
    return {**cell.identity(), "data": data.fingerprint, "public data": data.public_fingerprint}


def record_identity(record: Record) -> dict[str, JsonValue] | None:
    """`cell_identity` of a record's cell; None if it cannot be had here.

    It cannot if the data never opened, a plug-in is not installed or is a file, or a parameter is not in the record.
    """
    if record.dataset is None or files_of(record):
        return None
    try:
        return cell_identity(planned_of(record)[0], record.dataset)
    except UsageError:
        return None


def drawn_people(choice: Mapping[str, object]) -> str | None:
    """A record's data set by its choice; None unless people are drawn."""
    try:
        chosen = configure("datasets", str(choice.get("dataset")), str(choice.get("preset")))
    except UsageError:
        return None
    return str(chosen) if chosen.plugin.draws_people else None


def population(record: Record) -> tuple[str, str] | None:
    """Name and fingerprint of a record's drawn people, or None."""
    if record.dataset is None or (dataset := drawn_people(record.choice)) is None:
        return None
    return f"{dataset}, preset {record.preset}, size {record.choice.get('size')}", record.dataset.fingerprint


def cell_secret(results: Results, cell: Cell, data: DatasetRecord) -> Secret:
    """The secret that a cell works under in a results folder.

    The one that came with the cell from another folder; else a child of the folder's run secret, which is made if
    missing.
    """
    identity = cell_identity(cell, data)
    brought = results.cell_secrets.read().get(content_key(identity))
    return results.keep_secret().of_cell(identity) if brought is None else brought


def cell_commitment(results: Results, cell: Cell, data: DatasetRecord) -> str | None:
    """The commitment to a cell's secret; None before the folder's first run."""
    brought = results.cell_secrets.read().get(content_key(cell_identity(cell, data)))
    if brought is None and results.commitment is None:
        return None
    return cell_secret(results, cell, data).commitment()


def release_inputs(
    cell: Cell,
    data: DatasetRecord,
    key: int,
    commitment: str,
    *,
    apart: bool,
    drawn: bool = False,
    simulated: bool = False,
) -> dict[str, JsonValue]:
    """All that a sealed release depends on; the cell's secret by commitment.

    `drawn` says that the rows are not the private ones, but drawn anew for that key among those and the test rows;
    `simulated` that the key is none of the owner's.
    """
    made = _method_inputs(cell, data, cell.method.plugin)
    return {
        **made,
        **_form(cell),
        **({"rows drawn anew": True} if drawn else {}),
        **({"simulated": True} if simulated else {}),
        "method apart": apart,
        COMMITMENT: commitment,
        "key": key,
        "release code": code_digest(RELEASE),
    }


def record_inputs(cell: Cell, data: DatasetRecord, planned: Planned, commitment: str | None) -> dict[str, JsonValue]:
    """All that a record depends on: its plug-ins and their tools.

    `commitment` is that of the cell's secret, None where there is none yet.
    """
    attacking: dict[str, JsonValue] = {}
    if planned.attack is not None:
        record = plugin_record(planned.attack)
        attacking = plugin_inputs("attack", name=record.name, parameters=record.parameters, code=record.code)
    metrics = {f"{METRIC}{parse(name).shown}": registered_digest("metrics", name) for name in sorted(planned.metrics)}
    preset = cast(dict[str, JsonValue], json.loads(json.dumps(asdict(cell.choice.sizes))))
    del preset["timeout"]
    earlier = cell.earlier
    return {
        **_method_inputs(cell, data, cell.method.plugin),
        **_form(cell),
        **({} if earlier is None else {"other release's code": plugin_digest(earlier.method.plugin)}),
        **attacking,
        **reader_inputs(data),
        **shown_inputs(kind=planned.kind, preset=cell.choice.preset, data=data),
        **metrics,
        COMMITMENT: commitment,
        "preset": preset,
        "evaluator": planned.name,
        "evaluator code": registered_digest("evaluators", planned.written),
        "judge code": code_digest(JUDGE),
    }


def is_code(name: str) -> bool:
    """If an input is a hash of code, not a value."""
    return name.endswith("code") or name.startswith(METRIC)


ELSEWHERE = frozenset({"torch"})  # an input that says where a record was made, not by which of our code


def planned_of(record: Record) -> tuple[Cell, Planned]:
    """A record's cell and measurement, built again from its text.

    Raises:
        UsageError: Something that it names is not installed here, is a file of its author's, or takes a parameter that
            records do not show.
    """
    cell = Cell(configure("methods", record.method.written, record.preset), Choice.read(record.choice), record.device)
    attack = None if record.attack is None else configure("attacks", record.attack.written, record.preset)
    return cell, Planned(record.measured_by, attack, tuple(metric.written for metric in record.metrics.values()))


def stale(record: Record) -> str:
    """The reason why installed code would not make this record; else empty.

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
    """The record's method and attack that no installed package has."""
    plugins: list[tuple[Group, PluginRecord | None]] = [("methods", record.method), ("attacks", record.attack)]
    return [
        f"{registry.noun(group)} {line(plugin.name)} of the package {line(plugin.origin)}"
        for group, plugin in plugins
        if plugin is not None and ".py:" not in plugin.written and plugin.name not in registry.entries(group)
    ]


def files_of(record: Record) -> list[str]:
    """The author's files (`FILE.py:CLASS`) that a record names."""
    attack = [] if record.attack is None else [record.attack.written]
    metrics = [metric.written for metric in record.metrics.values()]
    values = [value for value in record.choice.values() if isinstance(value, str)]
    names = [record.method.written, *attack, record.measured_by, *metrics, *values]
    return [name for name in names if ".py:" in name]
