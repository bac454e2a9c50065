"""Small made-up records for the tests of the leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from bench.plugins import registry
from bench.plugins.spec import options
from bench.results.records import (
    CHOICE,
    METRIC,
    ClaimRecord,
    DatasetRecord,
    MetricRecord,
    PluginRecord,
    Record,
    ScoreRecord,
    metric_record,
    told,
)
from bench.results.signed_json import content_key
from bench.workbench.choice import Choice

OPTIONS = frozenset(options(Choice)) - {"dataset", "keys", "scheme"}  # records have fields of these names
WHEN = "2025-01-02T03:04:05Z"
ASKED = {
    "reidentification": ("guesswork", "patient-guesswork", "reid-auc", "patient-reid-auc", "top-1"),
    "membership": ("membership-auc", "membership-tpr"),
    "utility": ("utility-auc",),
}
"""What a made-up record was asked for beyond its figures, by its kind."""


def metric(title: str, **more: Any) -> MetricRecord:
    usual = {"meaning": "", "group": "Utility", "digits": None, "chance": "", "order": 50, "better": "lower"}
    return MetricRecord(written=title, title=title, unit="", **(usual | more))


def metrics(*names: str) -> dict[str, MetricRecord]:
    """What records say of metrics: of this project's as they are, of others what a test needs."""
    ours = registry.entries("metrics")
    return {
        name: metric_record(registry.load("metrics", name), name) if name in ours else metric(name) for name in names
    }


def score(
    value: float,
    low: float | None = None,
    high: float | None = None,
    *,
    better: Literal["higher", "lower"] = "lower",
    **more: Any,
) -> ScoreRecord:
    usual = {"n": 100, "null": None, "null_low": None, "null_high": None, "unit": ""}
    if low is None:
        usual["note"] = "made up, without an interval"
    return ScoreRecord(value=value, low=low, high=high, better=better, **(usual | more))


def auc(value: float, spread: float = 0.02) -> ScoreRecord:
    return score(value, value - spread, value + spread, null=0.5, null_low=0.48, null_high=0.52, unit="AUC")


def guesswork(value: float) -> ScoreRecord:
    return score(
        value, value * 0.5, value * 2, better="higher", null=100.0, null_low=3.0, null_high=362.0, unit="guesses"
    )


def utility(value: float, **parts: float) -> ScoreRecord:
    def one(v: float) -> dict[str, Any]:
        return {"value": v, "low": v - 0.03, "high": v + 0.03, "better": "higher", "null": 0.5, "unit": "AUC"}

    whole = score(**one(value), null_low=0.46, null_high=0.54)
    return whole.model_copy(update={"parts": {name: score(**one(v)) for name, v in parts.items()}})


def dataset(name: str = "synth-cxr", **more: Any) -> DatasetRecord:
    usual: dict[str, Any] = {
        "name": name, "parameters": {}, "fingerprint": f"{name}-f00d", "public": "synth-nih",
        "public_fingerprint": "beef", "rows": {"public": 600, "private": 300, "control": 100, "test": 200},
        "subjects": {"public": 200, "private": 100, "control": 40, "test": 60}, "shape": [1, 64, 64],
        "findings": ["Edema", "Atelectasis"], "shareable": True, "skipped": 0, "notes": [],
    }  # fmt: skip
    return DatasetRecord(**(usual | more))


def claim(epsilon: float | None, derived: float | None = None) -> ClaimRecord:
    derived = epsilon if derived is None else derived
    return ClaimRecord(
        unit="image", epsilon=epsilon, derived=derived, delta=0.0, assumptions="pixels in range", basis="a paper, eq. 1"
    )


def plugin(name: str, parameters: Mapping[str, Any]) -> PluginRecord:
    return PluginRecord(
        name=name,
        written=name,
        parameters=dict(parameters),
        source=f"paper of {name}",
        code="c0de",
        origin="veil-bench",
    )


def record(
    method: str = "dp-simple",
    evaluator: str = "contrastive",
    scores: Mapping[str, ScoreRecord] | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    kind: str = "reidentification",
    cell: str | None = None,
    **more: Any,
) -> Record:
    parameters = dict(parameters or {})
    chosen = {
        "dataset": "synth-cxr",
        "keys": None,
        **dict.fromkeys(OPTIONS),
        "preset": "quick",
        "seed": 0,
        "skip_corrupt": False,
    }
    chosen |= {name: more.pop(name) for name in OPTIONS if name in more}
    preset, seed = chosen["preset"], chosen["seed"]
    data = more.get("dataset", dataset())
    asked = {*ASKED.get(kind, ()), *(scores or {}), *more.get("not_applicable", {})}
    described = more.get("metrics", metrics(*sorted(asked)))
    scores = {name: as_described(each, described[name]) for name, each in (scores or {}).items() if name in described}
    usual: dict[str, Any] = {
        "status": "ok", "evaluator": evaluator, "kind": kind, "measured_by": kind, "method": plugin(method, parameters),
        "cell": cell or f"{method}-{sorted(parameters.items())}-{preset}-{seed}-{data and data.fingerprint}",
        "attack": plugin(evaluator, {}) if kind == "reidentification" else None, "dataset": data, "choice": chosen,
        "device": "cpu",
        "keys": 5, "metrics": described, "scores": dict(scores or {}), "key": "", "inputs": {},
        "created": WHEN, "git": "abc",
        "hardware": {"device": "cpu", "processor": "Test CPU"}, "versions": {"torch": "2.11"}, "seconds": {"fit": 1.5},
        "threat_model": {"key": "no"} if kind == "reidentification" else {},
    }  # fmt: skip
    return keyed(Record(**(usual | more))) if not {"inputs", "key"} & more.keys() else Record(**(usual | more))


def as_described(figure: ScoreRecord, by: MetricRecord) -> ScoreRecord:
    """The figure, with its parts, in the direction and the unit of its metric."""
    parts = {name: as_described(part, by) for name, part in figure.parts.items()}
    return figure.model_copy(update={"better": by.better, "unit": by.unit, "parts": parts})


def word(method: str = "dp-simple", *broken: str, **more: Any) -> Record:
    """What the judge found of a method's word; `broken` are the promises that it breaks."""
    parts = {name: score(float(name in broken)) for name in ("pairs", "labels", "links", "replay")}
    figure = score(float(len(broken))).model_copy(update={"parts": parts})
    return record(method, "honesty", {"broken-promises": figure}, kind="honesty", **more)


def keyed(made: Record, **more: Any) -> Record:
    """The record, changed, with the inputs and the key that go with what it says, as the harness would write it."""
    changed = made.model_copy(update=more)
    inputs: dict[str, Any] = {}
    if changed.dataset is not None:
        codes = {f"{METRIC}{metric.written}": "c0de" for metric in changed.metrics.values()}
        inputs = {**told(changed), **codes, CHOICE: dict(changed.choice)}
    return changed.model_copy(update={"inputs": inputs, "key": content_key(inputs)})
