"""Content keys: everything that a fitted scheme, a sealed release and a record depend on, and nothing else.

Drawing, messages, progress, registry, specs, records and the store are no part of a key (`bench.plugins.source_hash`);
nor is how rows were prepared and read, for their fingerprints say what came of it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue

from bench.plugins import registry
from bench.plugins.chosen import Chosen, to_fit
from bench.plugins.source_hash import modules_hash, plugin_hash, source_hash
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
_ROOMS = Path(__file__).parents[1]
SPLITS = _ROOMS / "workbench" / "open_data.py"
RELEASE = _ROOMS / "workbench" / "workbench.py"
JUDGE = _ROOMS / "runs" / "judge.py"


def plugin_record(chosen: Chosen[Any]) -> PluginRecord:
    """A method or attack as it runs."""
    plugin = chosen.plugin
    return PluginRecord(
        name=plugin.name,
        written=chosen.shown,
        parameters=cast(dict[str, JsonValue], told_parameters(plugin)),
        source=plugin.source,
        code=plugin_hash(plugin),
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
        **plugin_inputs("method", name=method.name, parameters=told, code=plugin_hash(method)),
        **data_inputs(data),
        "protocol": PROTOCOL,
        "splits code": modules_hash(SPLITS),
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
        "release code": modules_hash(RELEASE),
    }


def record_inputs(cell: Cell, data: DatasetRecord, planned: Planned, commitment: str | None) -> dict[str, JsonValue]:
    """Everything a record depends on: its own evaluator, method, attack and metrics, and what they compute with.

    `commitment` is that of the run secret, None where there is none yet.
    """
    attacking: dict[str, JsonValue] = {}
    if planned.attack is not None:
        record = plugin_record(planned.attack)
        attacking = plugin_inputs("attack", name=record.name, parameters=record.parameters, code=record.code)
    metrics = {
        f"{METRIC}{parse(name).shown}": source_hash(registry.load("metrics", name)) for name in sorted(planned.metrics)
    }
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
        "evaluator code": source_hash(registry.load("evaluators", planned.written)),
        "judge code": modules_hash(JUDGE),
    }


def is_code(name: str) -> bool:
    """Whether an input is a hash of code, or a value."""
    return name.endswith("code") or name.startswith(METRIC)
