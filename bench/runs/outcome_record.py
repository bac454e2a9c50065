"""From the outcome of an evaluation to its record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, cast

import torch
from pydantic import JsonValue, TypeAdapter, ValidationError

from bench.disk.atomic_file import write_atomically
from bench.evidence import EVES_FORM, OWNERS_FORM, part_of
from bench.plugins import registry
from bench.plugins.spec import UsageError, parse
from bench.results import signed_json
from bench.results.disclosure_check import PEAKS, harmless, rounded, shortages
from bench.results.evidence_file import bind
from bench.results.reason import UNSAID, Code, Phase, withheld
from bench.results.record_parts import Part
from bench.results.records import (
    DatasetRecord,
    FeatureRecord,
    MetricRecord,
    Record,
    ScoreRecord,
    Status,
    evidence_record,
    metric_record,
    picture_record,
)
from bench.results.signed_json import AlteredError, content_key
from bench.rows.grouping import IMAGES
from bench.runs.engine import Outcome
from bench.runs.tasks import Evaluation, Fitted
from bench.sandbox import Isolation
from bench.types import Metric
from bench.wire.text import scrub
from bench.workbench.cell import Cell, Planned
from bench.workbench.inputs import plugin_record, record_inputs
from bench.workbench.machine import git_state, hardware, versions


@dataclass(frozen=True, eq=False)
class OutcomeRecord:
    """An unsigned record, its PNGs by name, and its evidence or None."""

    record: Record
    pictures: Mapping[str, bytes]
    evidence: bytes | None


def outcome_record(
    cell: Cell, data: DatasetRecord, planned: Planned, fitted: Fitted | None, outcome: Outcome, *,
    commitment: str | None, jobs: int, isolation: Isolation,
) -> OutcomeRecord:  # fmt: skip
    """The record of an evaluation; for restricted data, codes and figures only.

    `fitted` is None if nothing was fitted; `commitment` is that to the run secret; so many `jobs` ran at a time.
    """
    inputs = record_inputs(cell, data, planned, commitment)
    result = outcome.value if isinstance(outcome.value, Evaluation) else Evaluation()
    metrics = described(planned.metrics)
    if not {*result.scores, *result.not_applicable, *result.broken} <= metrics.keys():
        said = "the worker process spoke of metrics that were not asked for"
        result, outcome = Evaluation(), replace(outcome, status="failed", code="protocol", reason=said)
    elif not data.shareable:
        result = restricted(
            result, data, cell.device, own_attack=planned.attack is not None and planned.attack.ours,
            own_method=cell.method.ours,
        )  # fmt: skip
    if result.broken:
        reason = "; ".join(f"{name}: {text}" for name, text in result.broken.items())
        outcome = replace(outcome, status="failed", code="metric", phase="judge", reason=reason)
    evaluator = planned.evaluator
    key = content_key(inputs)
    evidence = None if result.evidence is None else bind(result.evidence, key)
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
        evidence=None if evidence is None else evidence_record(evidence),
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
        key=key,
        inputs=inputs,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    pictures = {name: picture.png for name, picture in result.pictures.items()}
    return OutcomeRecord(record, pictures, evidence)


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


class _Stored(Part):
    """An outcome as JSON; fields as in `bench.runs.engine.Outcome`."""

    status: Status
    value: JsonValue
    code: Code | None
    reason: str | None
    phase: Phase | None
    seconds: float
    cpu_seconds: float
    peaks: dict[Phase, int]


def write_outcome(path: Path, kind: str, answer: type[object], outcome: Outcome) -> None:
    """Write the outcome of the job `kind`, whose value is an `answer`."""
    value = None
    if outcome.value is not None:
        value = TypeAdapter(answer).dump_python(outcome.value, mode="json", warnings="error")
    stored = _Stored(**{**vars(outcome), "value": value, "peaks": dict(outcome.peaks)})
    proved = signed_json.attest(stored.model_dump(mode="json"), kind)
    write_atomically(path, signed_json.written(proved), mode=0o600, sweep=False)


def read_outcome(path: Path, kind: str, answer: type[object]) -> Outcome | None:
    """The outcome in a file; None if it is missing or invalid."""
    try:
        stored = _Stored.model_validate(signed_json.read(path.read_bytes(), kind))
        value = None if stored.status != "ok" else TypeAdapter(answer).validate_python(stored.value)
    except (AlteredError, ValidationError, OSError):  # not there, half visible, or of another version
        return None
    return Outcome(**{**vars(stored), "value": value})


PARTS = frozenset({
    "ceiling", "half samples", "first guess", "raw image", "two releases", "varying columns", "primary constituent",
    "games", "noise checks", "if Gaussian", "1 %", "1 guess", "10 guesses", "100 guesses",
    "pairs", "labels", "links", "replay", "faces", "all people", "median person", "person at 95 %", "most often found",
    "worst", "bound without a hit", "mean", "upper limit", "limit", "reach", "black-box", "black-box ceiling",
})  # fmt: skip
POINT = re.compile(r"(within|1 false in) [1-9][0-9]{0,6}")
"""Points of a curve."""
SECONDS = ("open", "total")
MOST_THREADS = 10_000


def restricted(
    found: Evaluation, data: DatasetRecord, device: str, *, own_attack: bool, own_method: bool
) -> Evaluation:
    """The evaluation without words of plug-ins; this process describes the machine.

    Names, words and numbers of a plug-in may hold data that it has seen: pixels, paths and identifiers have left in
    notes, in the names of stages and of exceptions, and in texts that explain refusals. The figures stay with their
    intervals. Their replicates go: they are enough numbers for an image, and reveal figures of single people to those
    who know the resamples. `own_attack` and `own_method` as in `bench.results.disclosure_check.harmless`.
    """
    groups = {"finding": data.findings, "images": IMAGES, **data.attributes}
    parts = [part_of(finding, form) for finding in ("", "classes", *data.findings) for form in (EVES_FORM, OWNERS_FORM)]
    names = PARTS.union(data.findings, parts, (f"{name}: {group}" for name, of in groups.items() for group in of))
    said = {name: value for name, value in found.details.items() if name != PEAKS}  # measured outside of the worker
    threads = found.hardware.get("threads")
    machine = hardware(torch.device(device)) | ({"threads": threads} if threads in range(1, MOST_THREADS) else {})
    return Evaluation(
        scores={name: _figure(score, names) for name, score in found.scores.items()},
        not_applicable=dict.fromkeys(found.not_applicable, withheld("not-applicable")),
        broken=dict.fromkeys(found.broken, withheld("metric")),
        seconds={name: round(found.seconds[name], 3) for name in SECONDS if name in found.seconds},
        hardware=machine,
        details=harmless(said, data.findings, own_attack=own_attack, own_method=own_method),
    )


def restricted_fit(fitted: Fitted) -> Fitted:
    """A method's bounds without its words, and what ran short."""
    claim = fitted.claim
    if claim is not None:
        claim = claim.model_copy(update={"assumptions": UNSAID, "basis": UNSAID})
    return Fitted(claim=claim, notes=shortages(fitted.notes), seconds=fitted.seconds)


def restricted_data(data: DatasetRecord) -> DatasetRecord:
    """The data record without notes of extractors."""

    def quiet(reader: FeatureRecord | None) -> FeatureRecord | None:
        return None if reader is None else reader.model_copy(update={"notes": {}})

    return data.model_copy(update={"features": quiet(data.features), "scored_in": quiet(data.scored_in)})


def _figure(score: ScoreRecord, names: frozenset[str]) -> ScoreRecord:
    """A figure whose parts are named by findings, fixed words or place."""
    parts = {
        name if name in names or POINT.fullmatch(name) else f"part {place}": _figure(part, names)
        for place, (name, part) in enumerate(score.parts.items(), start=1)
    }
    return rounded(score.model_copy(update={"note": UNSAID, "parts": parts, "replicates": None, "exchanges": None}))
