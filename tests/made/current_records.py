"""Made-up records that are keyed as the installed code would key them, so that they pass for records of it."""

from __future__ import annotations

from typing import Any, cast

from bench.plugins.configured import configure
from bench.results.records import DatasetRecord, Record
from bench.results.signed_json import content_key
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.inputs import plugin_record, record_inputs
from made.board_records import as_described, metrics, score

HASH = "f00d" * 16


def current(method: str = "identity", kind: str = "utility", attack: str | None = None, **more: Any) -> Record:
    """A record of digits at smoke; `more` are fields of it, or options of the choice of data."""
    options: dict[str, Any] = {name: more.pop(name) for name in ("seed", "limit") if name in more}
    choice = Choice.read({"dataset": "digits", "preset": "smoke", **options})
    cell = Cell(configure("methods", method, "smoke"), choice, "cpu")
    metric = "utility-auc" if attack is None else "reid-auc"
    planned = Planned(kind, None if attack is None else configure("attacks", attack, "smoke"), (metric,))
    data = cast(DatasetRecord, more.pop("dataset", None)) or DatasetRecord(
        name="digits", parameters={}, fingerprint=HASH, public="digits", public_fingerprint=HASH,
        rows={"public": 9, "private": 9, "control": 9, "test": 9}, subjects={}, shape=[1, 8, 8], findings=["0", "1"],
        shareable=True, skipped=0, notes=[],
    )  # fmt: skip
    inputs = record_inputs(cell, data, planned, "c0ffee") | more.pop("inputs", {})
    usual: dict[str, Any] = {
        "status": "ok", "cell": cell.folder, "evaluator": planned.name, "kind": planned.kind, "measured_by": kind,
        "method": plugin_record(cell.method), "dataset": data, "choice": choice.shown(), "device": "cpu", "keys": 2,
        "attack": None if planned.attack is None else plugin_record(planned.attack), "isolation": "sandbox",
        "metrics": metrics(metric), "scores": {metric: as_described(score(0.75, 0.7, 0.8), metrics(metric)[metric])},
        "hardware": {"device": "cpu", "processor": "Test CPU"}, "versions": {"torch": "2.14", "numpy": "2.4"},
        "git": "abc", "created": "2025-01-02T03:04:05+00:00",
    }  # fmt: skip
    return Record(**(usual | {"inputs": inputs, "key": content_key(inputs)} | more))
