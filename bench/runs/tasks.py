"""What workers do: open a choice of data, fit a cell's method, evaluate a cell.

Every evaluator sees the same sealed releases. Attacks are handed Eve's view; links, keys and the run's seed stay here.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from pydantic import JsonValue

from bench.contract.evaluator import check_measurement, check_pictures
from bench.plugins import registry
from bench.progress import stage
from bench.results.records import ClaimRecord, DatasetRecord, ScoreRecord, claim_record, score_record
from bench.runs.judge import judge
from bench.types import Metric, NotApplicable, Picture
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.machine import hardware
from bench.workbench.open_data import open_data
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class Evaluation:
    """What an evaluator found; fields as in `bench.results.records.Record`.

    `broken` holds the metrics that failed, and how; `pictures` PNGs to stand beside the record.
    """

    scores: Mapping[str, ScoreRecord]
    not_applicable: Mapping[str, str]
    broken: Mapping[str, str]
    threat_model: Mapping[str, str]
    details: Mapping[str, JsonValue]
    seconds: Mapping[str, float]
    hardware: Mapping[str, JsonValue]
    pictures: Mapping[str, Picture]


NOTHING = Evaluation({}, {}, {}, {}, {}, {}, {}, {})


@dataclass(frozen=True)
class Fitted:
    """What fitting a cell's method gave: its claim, what it says of itself, and seconds."""

    claim: ClaimRecord | None
    notes: Mapping[str, JsonValue]
    seconds: float


@dataclass(frozen=True)
class OpenTask:
    """Prepare and split a choice of data, with so many processes."""

    choice: Choice
    place: Place
    device: str
    workers: int


@dataclass(frozen=True)
class FitTask:
    """Fit a cell's method."""

    cell: Cell
    place: Place


@dataclass(frozen=True)
class EvaluateTask:
    """Run an evaluator on a cell."""

    cell: Cell
    place: Place
    planned: Planned


def open_task(argument: object) -> DatasetRecord:
    """Do an `OpenTask` and describe the data."""
    task = cast(OpenTask, argument)
    return open_data(task.choice, task.place, torch.device(task.device), workers=task.workers)[1]


def fit_task(argument: object) -> Fitted:
    """Do a `FitTask`."""
    task = cast(FitTask, argument)
    start = time.perf_counter()
    scheme = Workbench.open(task.cell, task.place).scheme()
    return Fitted(claim_record(scheme.claim()), _printable(scheme.notes()), time.perf_counter() - start)


def evaluate_task(argument: object) -> Evaluation:
    """Do an `EvaluateTask`."""
    task = cast(EvaluateTask, argument)
    start = time.perf_counter()
    bench = Workbench.open(task.cell, task.place)
    opened = time.perf_counter() - start
    metrics = [cast("Metric[object]", registry.load("metrics", name)()) for name in task.planned.metrics]
    evaluator = task.planned.evaluator
    found = check_measurement(evaluator, evaluator.measure(bench))
    stage("judge")
    scores, without, broken = {}, {}, {}
    for metric in metrics:
        try:
            scores[metric.name] = score_record(judge(metric, found.evidence), better=metric.better, unit=metric.unit)
        except NotApplicable as reason:
            without[metric.name] = str(reason)
        except Exception as error:  # one metric that fails takes neither the attack nor the other metrics with it
            traceback.print_exc()
            broken[metric.name] = f"{type(error).__name__}: {error}"
    pictures: Mapping[str, Picture] = {}
    if bench.record.shareable:
        stage("draw")
        try:
            pictures = check_pictures(evaluator.pictures(bench, found))
        except Exception:  # a picture that fails takes no figure with it; the log says why
            traceback.print_exc()
    seconds = {"open": opened, **found.seconds, "total": time.perf_counter() - start}
    return Evaluation(
        scores, without, broken, found.threat_model, _printable(found.details), seconds, hardware(bench.device),
        pictures,
    )  # fmt: skip


def _printable(notes: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The same with numbers that are not finite as text: records hold none, and one note must not cost a record."""

    def plain(value: JsonValue) -> JsonValue:
        if isinstance(value, dict):
            return {name: plain(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [plain(inner) for inner in value]
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value

    return {name: plain(value) for name, value in notes.items()}
