"""The evaluators: each takes a cell laid out for work and gives scores. They run in worker processes.

Every evaluator sees the same sealed releases. Attacks are handed Eve's view; links, keys and the run's seed stay here.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

import torch
from pydantic import JsonValue
from torch import Tensor

from bench.contract.seal import Sealed
from bench.evaluators.anonymity import run_anonymity
from bench.evaluators.audit import run_audit
from bench.evaluators.decoding import run_decoding
from bench.evaluators.detection import run_detection
from bench.evaluators.linear_probe import run_linear_probe
from bench.evaluators.membership import run_membership
from bench.evaluators.probes import run_probes
from bench.evaluators.reidentification import run_attack
from bench.evaluators.tables import run_tables
from bench.evaluators.transfer import run_transfer
from bench.evaluators.utility import run_learning_curve, run_utility
from bench.evidence import (
    AnonymityEvidence,
    AuditEvidence,
    DecodingEvidence,
    DetectionEvidence,
    LearningEvidence,
    LinearProbeEvidence,
    MembershipEvidence,
    PairEvidence,
    ProbeEvidence,
    SetEvidence,
    TableEvidence,
    TimingEvidence,
    TransferEvidence,
    UtilityEvidence,
)
from bench.pictures.strips import before_and_after
from bench.plugins import registry
from bench.progress import stage
from bench.results.records import RARE, ClaimRecord, DatasetRecord, Kind, ScoreRecord, claim_record, score_record
from bench.rows.originals import originals
from bench.types import Attack, Metric, NotApplicable, Score
from bench.workbench.cell import Cell, DataChoice, Evaluator, Place
from bench.workbench.machine import hardware
from bench.workbench.measurement import Measurement
from bench.workbench.open_data import open_data
from bench.workbench.timing import WARM_UPS, repeat
from bench.workbench.workbench import Workbench


@dataclass(frozen=True)
class Evaluation:
    """What an evaluator found; fields as in `bench.results.records.Record`. `broken`: metrics that failed, and how.

    `picture` is a PNG to stand beside the record.
    """

    scores: Mapping[str, ScoreRecord]
    not_applicable: Mapping[str, str]
    broken: Mapping[str, str]
    threat_model: Mapping[str, str]
    details: Mapping[str, JsonValue]
    seconds: Mapping[str, float]
    hardware: Mapping[str, JsonValue]
    picture: bytes | None = None


@dataclass(frozen=True)
class Fitted:
    """What fitting a cell's method gave: its claim, what it says of itself, and seconds."""

    claim: ClaimRecord | None
    notes: Mapping[str, JsonValue]
    seconds: float


@dataclass(frozen=True)
class Task:
    """One evaluator on one cell, small enough to send to a worker."""

    cell: Cell
    place: Place
    evaluator: Evaluator


def open_task(argument: object) -> DatasetRecord:
    """Prepare and split the data of a (DataChoice, Place, device, workers) and describe them."""
    choice, place, device, workers = cast(tuple[DataChoice, Place, str, int], argument)
    return open_data(choice, place, torch.device(device), workers=workers)[1]


def fit_task(argument: object) -> Fitted:
    """Fit the method of a (Cell, Place)."""
    cell, place = cast(tuple[Cell, Place], argument)
    start = time.perf_counter()
    scheme = Workbench.open(cell, place).scheme()
    return Fitted(claim_record(scheme.claim()), _printable(scheme.notes()), time.perf_counter() - start)


def evaluate_task(argument: object) -> Evaluation:
    """Run the evaluator of a Task."""
    task = cast(Task, argument)
    start = time.perf_counter()
    bench = Workbench.open(task.cell, task.place)
    opened = time.perf_counter() - start
    metrics = [cast("Metric[object]", registry.load("metrics", name)()) for name in task.evaluator.metrics]
    found = EVALUATORS[task.evaluator.kind](bench, task.evaluator.build(task.cell.data.preset))
    stage("judge")
    scores, without, broken = {}, {}, {}
    for metric in metrics:
        try:
            scores[metric.name] = score_record(_judge(metric, found.evidence), better=metric.better, unit=metric.unit)
        except NotApplicable as reason:
            without[metric.name] = str(reason)
        except Exception as error:  # one metric that fails takes neither the attack nor the other metrics with it
            traceback.print_exc()
            broken[metric.name] = f"{type(error).__name__}: {error}"
    seconds = {"open": opened, **found.seconds, "total": time.perf_counter() - start}
    return Evaluation(
        scores, without, broken, found.threat_model, _printable(found.details), seconds, hardware(bench.device),
        found.picture,
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


def _judge(metric: Metric[object], evidence: Mapping[str, object]) -> Score:
    """The metric's figure; of several tasks the one that is worst for the data owner, with each of them as a part.

    A figure that beats chance is worse than any that does not: among few rows chance finds one soon.
    """
    found = {task: metric(part) for task, part in evidence.items()}
    if len(found) == 1:
        return next(iter(found.values()))
    sign = 1 if metric.better == "higher" else -1

    def rank(task: str) -> tuple[bool, float]:
        score = found[task]
        harms = score.null is not None and sign * score.value < sign * score.null
        return not (harms and score.p is not None and score.p * len(found) < RARE), sign * score.value

    worst = min(found, key=rank)
    score = found[worst]
    # The least of several tasks is looked at: its probability under chance grows by as much (Bonferroni).
    p = None if score.p is None else min(1.0, score.p * len(found))
    return replace(score, p=p, parts=found, note=f"worst of {len(found)} tasks: {worst}; {score.note}")


def run_sets(bench: Workbench, attack: Attack | None) -> Measurement:
    """The released rows under the first key beside the raw ones, as sets."""
    scheme = bench.scheme()
    sealed = bench.sealed(scheme, 0)
    subjects = None if bench.private.subjects is None else bench.private.subjects.cpu()
    labels, released_labels = bench.private.labels, sealed.release.labels
    evidence = SetEvidence(
        original=bench.vectors(bench.private.samples).cpu(),
        released=bench.vectors(sealed.release.samples).cpu(),
        subjects=subjects,
        released_subjects=_people(sealed, subjects),
        seed=bench.seed("sets"),
        labels=None if labels is None else labels.cpu(),
        released_labels=None if released_labels is None else bench.key(scheme, 0).decode(released_labels).cpu(),
        findings=bench.private.findings,
        exclusive=bench.private.exclusive,
    )
    picture = _picture(bench, sealed, evidence) if bench.record.shareable else None
    return Measurement({"": evidence}, {}, {}, {}, picture)


def _picture(bench: Workbench, sealed: Sealed, evidence: SetEvidence) -> bytes | None:
    """Images above one another; vectors as t-SNE; None where the two are not of one kind."""
    raw, released = bench.private.samples, sealed.release.samples
    if raw.ndim == 4 or raw.shape[1:] != released.shape[1:]:
        return before_and_after(raw, sealed)
    from bench.pictures.scatter import Cloud, scatter_sheet  # only here: what draws it takes seconds to import

    original = Cloud("original", evidence.original, evidence.labels)
    shown = Cloud("released", evidence.released, evidence.released_labels)
    return scatter_sheet(original, [shown], evidence.findings, "", seed=bench.seed("scatter"))


def _people(sealed: Sealed, subjects: Tensor | None) -> Tensor | None:
    """Who stands in each released row, where every row has exactly one raw row behind it."""
    if subjects is None or sealed.links is None:
        return None
    try:
        return subjects[originals(sealed.links.cpu(), len(sealed.release), "the method")]
    except NotApplicable:
        return None


def run_throughput(bench: Workbench, attack: Attack | None) -> Measurement:
    """Time releases of the private rows, each repeat under a key of its own that was drawn before."""
    scheme, repeats = bench.scheme(), bench.preset.repeats
    keys = [scheme.sample_key(bench.seed("timing", number)) for number in range(repeats + WARM_UPS)]
    unused = iter(keys)
    stage("time releases")
    timing = repeat(lambda: next(unused).release(bench.private), device=bench.device, repeats=repeats)
    details: dict[str, JsonValue] = {
        "repeats": repeats,
        "images": len(bench.private),
        "peak_mib": round(timing.peak_bytes / 2**20, 1),
    }
    evidence = TimingEvidence(len(bench.private), timing.seconds)
    return Measurement({"": evidence}, details, {"timed": sum(timing.seconds)}, {})


EVALUATORS: Mapping[Kind, Callable[[Workbench, Attack | None], Measurement]] = {
    "attack": run_attack,
    "membership": run_membership,
    "anonymity": run_anonymity,
    "utility": run_utility,
    "linear-probe": run_linear_probe,
    "learning-curve": run_learning_curve,
    "transfer": run_transfer,
    "detection": run_detection,
    "decoding": run_decoding,
    "sets": run_sets,
    "tables": run_tables,
    "probes": run_probes,
    "audit": run_audit,
    "throughput": run_throughput,
}
EVIDENCE: Mapping[Kind, type[object]] = {
    "attack": PairEvidence,
    "membership": MembershipEvidence,
    "anonymity": AnonymityEvidence,
    "utility": UtilityEvidence,
    "linear-probe": LinearProbeEvidence,
    "learning-curve": LearningEvidence,
    "transfer": TransferEvidence,
    "detection": DetectionEvidence,
    "decoding": DecodingEvidence,
    "sets": SetEvidence,
    "tables": TableEvidence,
    "probes": ProbeEvidence,
    "audit": AuditEvidence,
    "throughput": TimingEvidence,
}
