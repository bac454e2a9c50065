"""From the outcome of an evaluation to its record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, cast

from pydantic import JsonValue

from bench.plugins import registry
from bench.plugins.spec import UsageError, parse
from bench.results.content_key import content_key
from bench.results.disclosure_check import PEAKS
from bench.results.records import (
    DatasetRecord,
    MetricRecord,
    Record,
    ScoreRecord,
    evidence_record,
    metric_record,
    picture_record,
)
from bench.runs.answers import Evaluation, Fitted
from bench.runs.engine import Outcome
from bench.runs.restricted import restricted
from bench.sandbox import Isolation
from bench.types import Metric
from bench.wire.text import scrub
from bench.workbench.cell import Cell, Planned
from bench.workbench.inputs import plugin_record, record_inputs
from bench.workbench.machine import git_state, versions


@dataclass(frozen=True, eq=False)
class OutcomeRecord:
    """A record with the files beside it.

    Args:
        record: Without a signature.
        pictures: PNGs by name.
        evidence: The data behind its figures; None if it may not be shared, or there is none.
    """

    record: Record
    pictures: Mapping[str, bytes]
    evidence: bytes | None


def outcome_record(
    cell: Cell, data: DatasetRecord, planned: Planned, fitted: Fitted | None, outcome: Outcome, *,
    commitment: str | None, jobs: int, isolation: Isolation,
) -> OutcomeRecord:  # fmt: skip
    """The record of an evaluation; for restricted data, codes and figures only.

    Args:
        cell, data, planned: The cell, its data and the planned evaluator.
        fitted: The result of the fit; None if nothing was fitted.
        outcome: The result of the job.
        commitment: To the run secret; None if there is none yet.
        jobs: Number of jobs that ran at a time.
        isolation: The isolation of plug-ins.
    """
    inputs = record_inputs(cell, data, planned, commitment)
    result = outcome.value if isinstance(outcome.value, Evaluation) else Evaluation()
    metrics = described(planned.metrics)
    if not {*result.scores, *result.not_applicable, *result.broken} <= metrics.keys():
        said = "the worker process spoke of metrics that were not asked for"
        result, outcome = Evaluation(), replace(outcome, status="failed", code="protocol", reason=said)
    elif not data.shareable:
        result = restricted(
            result, data, cell.device, own_attack=planned.attack is not None and planned.attack.origin == registry.HOME,
            own_method=cell.method.origin == registry.HOME,
        )  # fmt: skip
    if result.broken:
        reason = "; ".join(f"{name}: {text}" for name, text in result.broken.items())
        outcome = replace(outcome, status="failed", code="metric", phase="judge", reason=reason)
    evaluator = planned.evaluator
    peaks: dict[str, JsonValue] = {phase: round(held / 2**30, 2) for phase, held in outcome.peaks.items()}
    record = Record(
        status=outcome.status,
        phase=outcome.phase,
        code=outcome.code,
        reason=None if outcome.reason is None else scrub(outcome.reason),
        cell=cell.folder,
        evaluator=planned.name,
        kind=planned.kind,
        measured_by=parse(planned.written).shown,
        method=plugin_record(cell.method),
        attack=None if planned.attack is None else plugin_record(planned.attack),
        dataset=data,
        claim=None if fitted is None else fitted.claim,
        scheme={} if fitted is None else dict(fitted.notes),
        threat_model=dict(result.threat_model),
        choice=cell.choice.shown(),
        device=cell.device,
        keys=evaluator.keys(cell.choice.sizes),
        metrics=metrics,
        scores={
            name: directed(score, metrics[name].better, metrics[name].unit) for name, score in result.scores.items()
        },
        not_applicable=dict(result.not_applicable),
        details={**result.details, **({PEAKS: peaks} if peaks else {})},
        pictures={
            name: picture_record(picture.png, picture.caption) for name, picture in sorted(result.pictures.items())
        },
        evidence=None if result.evidence is None else evidence_record(result.evidence),
        seconds={
            **result.seconds,
            **({} if fitted is None else {"fit": round(fitted.seconds, 3)}),
            "wall": outcome.seconds,
            "cpu": outcome.cpu_seconds,
        },
        hardware={**result.hardware, "jobs": 1 if evaluator.alone else jobs},
        isolation=isolation,
        versions=versions(),
        git=git_state(),
        key=content_key(inputs),
        inputs=inputs,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    pictures = {name: picture.png for name, picture in result.pictures.items()}
    return OutcomeRecord(record, pictures, result.evidence)


def described(metrics: Iterable[str]) -> dict[str, MetricRecord]:
    """Metrics in record form, by the names in the record.

    Raises:
        UsageError: A metric that tables could not show.
    """
    found = {}
    for name in metrics:
        cls = registry.load("metrics", name)
        try:
            found[cast("type[Metric[object]]", cls).name] = metric_record(cls, parse(name).shown)
        except (TypeError, ValueError) as error:
            raise UsageError(f"metric {name}: {error}") from error
    return found


def directed(score: ScoreRecord, better: Literal["higher", "lower"], unit: str) -> ScoreRecord:
    """The figure with the direction and unit of its metric."""
    parts = {name: directed(part, better, unit) for name, part in score.parts.items()}
    return score.model_copy(update={"better": better, "unit": unit, "parts": parts})
