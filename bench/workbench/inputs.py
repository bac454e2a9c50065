"""Content keys: everything that a fitted scheme, a sealed release and a record depend on, and nothing else.

Drawing, messages, progress, registry, specs, records and the store are no part of a key (`bench.plugins.code_digest`);
nor is how rows were prepared and read, for their fingerprints say what came of it.
"""

from __future__ import annotations

__figures__ = False

import json
from dataclasses import asdict
from importlib.metadata import version
from typing import Any, cast

from pydantic import JsonValue

from bench.plugins import registry
from bench.plugins.chosen import Chosen, to_fit
from bench.plugins.code_digest import code_digest, plugin_digest, registered_digest
from bench.plugins.spec import parse, told_parameters
from bench.results.records import (
    CHOICE,
    METRIC,
    DatasetRecord,
    PluginRecord,
    data_inputs,
    plugin_inputs,
    reader_inputs,
    shown_inputs,
)
from bench.types import Method
from bench.workbench.cell import Cell, Planned

PROTOCOL = 3
COMMITMENT = "run secret commitment"
SPLITS = "bench.workbench.open_data:open_data"
RELEASE = "bench.workbench.workbench:Workbench"
JUDGE = "bench.runs.judge:judge"


def plugin_record(chosen: Chosen[Any]) -> PluginRecord:
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
    """Everything a fitted scheme depends on, before `Method.load` adds what need not be learned.

    `apart` says that the method works in a process of its own: what it made elsewhere is not taken for that.
    """
    return {**_method_inputs(cell, data, to_fit(cell.method.plugin)), "method apart": apart}


def _method_inputs(cell: Cell, data: DatasetRecord, method: Method) -> dict[str, JsonValue]:
    told = cast(dict[str, JsonValue], told_parameters(method))
    return {
        **plugin_inputs("method", name=method.name, parameters=told, code=plugin_digest(method)),
        **data_inputs(data),
        "protocol": PROTOCOL,
        "splits code": code_digest(SPLITS),
        CHOICE: cast(dict[str, JsonValue], cell.choice.keyed()),
        "device": cell.device,
        "torch": version("torch"),
    }


def release_inputs(
    cell: Cell, data: DatasetRecord, key: int, commitment: str, *, apart: bool, drawn: bool = False
) -> dict[str, JsonValue]:
    """Everything the sealed release under one key depends on; of the run secret, its commitment.

    `drawn` says that the rows are not the private ones, but drawn anew for that key among those and the test rows.
    """
    made = _method_inputs(cell, data, cell.method.plugin)
    return {
        **made,
        **({"rows drawn anew": True} if drawn else {}),
        "method apart": apart,
        COMMITMENT: commitment,
        "key": key,
        "release code": code_digest(RELEASE),
    }


def record_inputs(cell: Cell, data: DatasetRecord, planned: Planned, commitment: str | None) -> dict[str, JsonValue]:
    """Everything a record depends on: its own evaluator, method, attack and metrics, and what they compute with.

    `commitment` is that of the run secret, None where there is none yet.
    """
    attacking: dict[str, JsonValue] = {}
    if planned.attack is not None:
        record = plugin_record(planned.attack)
        attacking = plugin_inputs("attack", name=record.name, parameters=record.parameters, code=record.code)
    metrics = {f"{METRIC}{parse(name).shown}": registered_digest("metrics", name) for name in sorted(planned.metrics)}
    preset = cast(dict[str, JsonValue], json.loads(json.dumps(asdict(cell.choice.sizes))))
    del preset["timeout"]
    return {
        **_method_inputs(cell, data, cell.method.plugin),
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
    """Whether an input is a hash of code, or a value."""
    return name.endswith("code") or name.startswith(METRIC)
