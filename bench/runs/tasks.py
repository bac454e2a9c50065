"""The work of workers: open data, fit a method, evaluate a cell.

Every evaluator sees the same sealed releases. Attacks get Eve's view; links, keys and the run's seed stay here.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from bench.contract.evaluator import check_measurement, check_pictures
from bench.contract.seal import ContractError
from bench.determinism import exact
from bench.isolation import RemoteAttack, tenant
from bench.plugins import registry
from bench.progress import AGAIN, SMALLER, forward_progress, stage
from bench.results.disclosure_check import SHORTAGES
from bench.results.evidence_file import MOST_BYTES, EvidenceError, pack
from bench.results.records import claim_record, score_record
from bench.runs.answers import Drawn, Evaluation, Fitted, Opened
from bench.runs.judge import judge
from bench.sandbox import Isolation
from bench.types import Evaluator, Metric, NotApplicable
from bench.wire.text import named, said
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.machine import hardware
from bench.workbench.open_data import open_data
from bench.workbench.place import Place
from bench.workbench.shared_people import refuse_shared_people
from bench.workbench.workbench import Workbench

SHORT: Mapping[str, str] = {SMALLER: "memory of the device", AGAIN: "releases on the disk"}
"""What ran short, by what is said when it does."""


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
    isolation: Isolation


@dataclass(frozen=True)
class EvaluateTask:
    """Run an evaluator on a cell."""

    cell: Cell
    place: Place
    planned: Planned
    isolation: Isolation


def open_task(argument: object) -> Opened:
    """Do an `OpenTask` and describe the data."""
    task = cast(OpenTask, argument)
    stage("data")
    opened = Opened(data=open_data(task.choice, task.place, exact(task.device), workers=task.workers)[1])
    refuse_shared_people(task.choice, task.place)
    return opened


def fit_task(argument: object) -> Fitted:
    """Do a `FitTask`."""
    task = cast(FitTask, argument)
    with _shortages() as short, closing(Workbench.open(task.cell, task.place, task.isolation)) as bench:
        scheme, seconds = bench.fitted()
        withheld = {"labels": bench.withheld} if bench.withheld else {}
        notes = _printable({**scheme.notes(), **withheld, **short})
        return Fitted(claim=claim_record(scheme.claim()), notes=notes, seconds=seconds)


def evaluate_task(argument: object) -> Evaluation:
    """Do an `EvaluateTask`."""
    task = cast(EvaluateTask, argument)
    start = time.perf_counter()
    with (
        _shortages() as short,
        _evaluator(task) as evaluator,  # first: Eve's process starts while the data open
        closing(Workbench.open(task.cell, task.place, task.isolation)) as bench,
    ):
        found = _evaluated(task, bench, evaluator, start)
        return found.model_copy(update={"details": {**found.details, **short}})


@contextmanager
def _shortages() -> Iterator[dict[str, JsonValue]]:
    """Collects notes on shortages of memory or disk within the block."""
    found: dict[str, JsonValue] = {}

    def hear(name: str, done: int, total: int) -> None:
        if name in SHORT:  # (a plug-in may say so, too: a record takes that it was said, and no number)
            found[SHORT[name]] = SHORTAGES[SHORT[name]]

    with forward_progress(hear):
        yield found


@contextmanager
def _evaluator(task: EvaluateTask) -> Iterator[Evaluator[Workbench]]:
    """The evaluator, with its attack in Eve's process within the block."""
    attack = task.planned.attack
    if attack is None or task.isolation == "none":
        yield task.planned.evaluator
        return
    cell = task.cell
    rooms = tenant(
        attack, cell.method, device=cell.device, sandbox=task.isolation == "sandbox", folder=task.place.results.rooms,
        memory=task.place.memory,
    )  # fmt: skip
    with closing(RemoteAttack(attack.plugin, rooms)) as remote:
        yield task.planned.evaluator_with(remote)


def _evaluated(task: EvaluateTask, bench: Workbench, evaluator: Evaluator[Workbench], start: float) -> Evaluation:
    opened = time.perf_counter() - start
    metrics = [cast("Metric[object]", registry.load("metrics", name)()) for name in task.planned.metrics]
    found = check_measurement(evaluator, evaluator.measure(bench))
    stage("judge")
    scores, without, broken = {}, {}, {}
    for metric in metrics:
        try:
            scores[metric.name] = score_record(judge(metric, found.evidence), better=metric.better, unit=metric.unit)
        except NotApplicable as reason:
            without[metric.name] = said(reason)
        except Exception as error:  # one metric that fails takes neither the attack nor the other metrics with it
            traceback.print_exc()
            broken[metric.name] = named(error)
    pictures: Mapping[str, Drawn] = {}
    if bench.record.shareable:
        stage("draw")
        try:
            pictures = {
                name: Drawn(caption=picture.caption, png=picture.png)
                for name, picture in check_pictures(evaluator.pictures(bench, found)).items()
            }
        except Exception:  # a picture that fails takes no figure with it; the log says why
            traceback.print_exc()
    kept = _kept_evidence(found.evidence) if bench.record.shareable else None
    seconds = {"open": opened, **found.seconds, "total": time.perf_counter() - start}
    return Evaluation(
        scores=scores, not_applicable=without, broken=broken, threat_model=dict(found.threat_model),
        details=_printable(found.details), seconds=seconds, hardware=hardware(bench.device), pictures=dict(pictures),
        evidence=kept,
    )  # fmt: skip


def _kept_evidence(evidence: Mapping[str, object]) -> bytes | None:
    """The evidence to keep beside the record; None if too large."""
    try:
        content = pack(evidence)
    except EvidenceError as error:  # of an author's own kind: the figures stand, and the log says why nothing is kept
        print(f"no evidence is kept: {error}")
        return None
    return content if len(content) <= MOST_BYTES else None


def _printable(notes: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The notes with non-finite numbers as text, which JSON does not hold.

    Raises:
        ContractError: They are no JSON.
    """
    try:
        text = json.dumps(dict(notes))
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(f"notes must be plain JSON by name: {error}") from None
    return cast("dict[str, JsonValue]", json.loads(text, parse_constant=lambda name: _WORDS[name]))


_WORDS = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
