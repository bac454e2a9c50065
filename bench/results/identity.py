"""Whom a record speaks of, as its inputs name it: one set of names for gathering inputs and for comparing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from pydantic import JsonValue

from bench.results.dataset_record import DatasetRecord
from bench.results.record import Record

METRIC = "metric "  # before the name of a metric, as written
CHOICE = "choice"
NAMES = frozenset(
    [f"{role}{part}" for role in ("method", "attack") for part in ("", " parameters", " code")]
    + ["features", "data", "public data", "rows", "scored in", "evaluator", "device"]
    + ["kind", "preset name", "data set", "public data set"]
)


def plugin_inputs(
    role: Literal["method", "attack"], *, name: str, parameters: Mapping[str, JsonValue], code: str
) -> dict[str, JsonValue]:
    """What inputs hold of a plug-in: its name, every parameter, and the hash of its code."""
    return {role: name, f"{role} parameters": dict(parameters), f"{role} code": code}


def data_inputs(data: DatasetRecord) -> dict[str, JsonValue]:
    """What inputs hold of the rows that methods get."""
    features: dict[str, JsonValue] = {} if data.features is None else {"features": data.features.fingerprint}
    rows = cast(dict[str, JsonValue], data.rows)
    return {**features, "data": data.fingerprint, "public data": data.public_fingerprint, "rows": rows}


def reader_inputs(data: DatasetRecord) -> dict[str, JsonValue]:
    """What inputs hold of what reads images for the evaluators alone."""
    return {} if data.scored_in is None else {"scored in": data.scored_in.fingerprint}


def shown_inputs(*, kind: str, preset: str, data: DatasetRecord) -> dict[str, JsonValue]:
    """What inputs hold of the names that tables show, which a hash of sizes or pixels would not give away."""
    return {"kind": kind, "preset name": preset, "data set": data.name, "public data set": data.public}


def told(record: Record) -> dict[str, JsonValue]:
    """What the inputs of a record must hold under `NAMES`, by what the record says of itself; nothing without data."""
    if (data := record.dataset) is None:
        return {}
    method, attack = record.method, record.attack
    plugins = plugin_inputs("method", name=method.name, parameters=method.parameters, code=method.code)
    if attack is not None:
        plugins |= plugin_inputs("attack", name=attack.name, parameters=attack.parameters, code=attack.code)
    own: dict[str, JsonValue] = {"evaluator": record.evaluator, "device": record.device}
    shown = shown_inputs(kind=record.kind, preset=record.preset, data=data)
    return {**plugins, **data_inputs(data), **reader_inputs(data), **shown, **own}


def disagreement(record: Record) -> str | None:
    """Where a record says something else of itself than its inputs do, in words; None where they agree."""
    inputs, said = record.inputs, told(record)
    if record.dataset is None and (inputs or record.scores):
        return "it has inputs or figures, and no data that they could come from"
    for name in sorted(NAMES):
        if (held := inputs.get(name)) != said.get(name):
            return f"its inputs give {name} as {held!r:.60}, the record as {said.get(name)!r:.60}"
    if record.dataset is None:
        return None
    measured = {f"{METRIC}{metric.written}" for metric in record.metrics.values()}
    if apart := measured ^ {name for name in inputs if name.startswith(METRIC)}:
        return f"its inputs and its metrics differ in {', '.join(sorted(apart))}"
    # What sizes and draws a run must be as the key has it: else a limited run would pass for a whole one.
    chosen = inputs.get(CHOICE)
    for name in ("seed", "limit"):
        if not isinstance(chosen, dict) or chosen.get(name) != record.choice.get(name):
            return f"its inputs and its choice of data differ in {name}"
    return None
