"""The work of workers: open data, fit a method, evaluate a cell.

Every evaluator sees the same sealed releases. Attacks get Eve's view; links, keys and the run's seed stay here.
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    StringConstraints,
    model_validator,
)

from bench.contract.evaluator import MOST_NAME, MOST_PICTURES, NAME, check_measurement, check_pictures, check_png
from bench.contract.seal import ContractError
from bench.determinism import exact
from bench.isolation import RemoteAttack, tenant
from bench.plugins import registry
from bench.plugins.third_party import is_outside
from bench.progress import AGAIN, SMALLER, forward_progress, stage
from bench.results.consistency import contradictions
from bench.results.disclosure_check import SHORTAGES
from bench.results.evidence_file import MOST_BYTES, EvidenceError, pack
from bench.results.reason import NO_FIGURE, Code, Phase, status_of
from bench.results.record_parts import Part
from bench.results.records import ClaimRecord, DatasetRecord, ScoreRecord, claim_record, score_record
from bench.runs.judge import judge
from bench.runs.release_people import most_images, person_claim
from bench.sandbox import LIVING, Isolation, why_whispers
from bench.types import Evaluator, Metric, NotApplicable, Scheme
from bench.wire.text import Name, Text, named, plain, plain_json, said
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.machine import hardware
from bench.workbench.open_data import open_data, refuse_shared_people
from bench.workbench.place import Place
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
        return Fitted(claim=_claimed(scheme, bench), notes=notes, seconds=seconds)


def _claimed(scheme: Scheme, bench: Workbench) -> ClaimRecord | None:
    """The claim, with its worth for a person's images.

    For data that may not be shared their number is rounded up to a power of two: it is one person's.
    """
    claim = scheme.claim()
    record = claim_record(claim)
    if claim is None or record is None:
        return None
    images = most_images(bench.private)
    images = images if bench.record.shareable else 1 << (images - 1).bit_length()
    return record.model_copy(update={"person": person_claim(claim, bench.private, images, apart=False)})


def evaluate_task(argument: object) -> Evaluation:
    """Do an `EvaluateTask`."""
    task = cast(EvaluateTask, argument)
    if reason := task.cell.refusal(task.planned):
        raise NotApplicable(reason)  # before rooms are started and data opened
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
    beside = () if cell.method.plugin.releases is not None else (cell.method,)  # her room sees no folder of links
    rooms = tenant(
        attack, *beside, device=cell.device, sandbox=task.isolation == "sandbox", folder=task.place.results.rooms,
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
            print(f"{NO_FIGURE}{metric.name}: {said(reason)}", file=sys.stderr)
        except Exception as error:  # one metric that fails takes neither the attack nor the other metrics with it
            traceback.print_exc()
            broken[metric.name] = named(error)
    for name, why in contradictions(scores).items():
        print(f"the figure {name} is withheld: {why}", file=sys.stderr)
        broken[name] = plain(why)
        del scores[name]
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
    details = _printable(found.details)
    outside = is_outside("methods", task.cell.method.spec)
    if task.isolation == "sandbox" and outside:
        details["living sandboxes"] = LIVING
        if (whispers := why_whispers()) is not None:
            details["sandboxes"] = f"can pass on to each other what they have seen: {whispers}"
    seconds = {"open": opened, **found.seconds, "total": time.perf_counter() - start}
    return Evaluation(
        scores=scores, not_applicable=without, broken=broken, threat_model=dict(found.threat_model),
        details=details, seconds=seconds, hardware=hardware(bench.device), pictures=dict(pictures),
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


# Messages of a worker are JSON, checked field by field and never unpickled: plug-ins share its process.
MESSAGE_CAP = 64 * 2**20
MOST_ENTRIES = 2000
MOST_STEPS = 2**53


def allowed(seconds: float) -> float:
    """Most messages of a worker in so many seconds."""
    return 1000 + 100 * seconds


def _decoded(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError("must be base64") from None


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _png(content: bytes) -> bytes:
    check_png(content)
    return content


def _score(score: ScoreRecord) -> ScoreRecord:
    parts = {plain(name, 200): _score(part) for name, part in score.parts.items()}
    if len(parts) > MOST_ENTRIES:
        raise ValueError(f"a figure must have at most {MOST_ENTRIES} parts, got {len(parts)}")
    return score.model_copy(update={"note": plain(score.note), "unit": plain(score.unit, 200), "parts": parts})


def _claim(claim: ClaimRecord) -> ClaimRecord:
    return claim.model_copy(update={name: plain(getattr(claim, name)) for name in ("assumptions", "basis")})


def _data(data: DatasetRecord) -> DatasetRecord:
    return DatasetRecord.model_validate(plain_json(data.model_dump(mode="json")))


Binary = Annotated[bytes, BeforeValidator(_decoded), PlainSerializer(_encoded, when_used="json")]
Png = Annotated[Binary, AfterValidator(_png)]
Evidence = Annotated[Binary, Field(max_length=MOST_BYTES)]
PictureName = Annotated[str, StringConstraints(pattern=f"^(?:{NAME.pattern})$", max_length=MOST_NAME)]
Scored = Annotated[ScoreRecord, AfterValidator(_score)]
Notes = Annotated[dict[str, JsonValue], AfterValidator(plain_json)]


class _Told(Part):
    model_config = ConfigDict(hide_input_in_errors=True)


class Drawn(_Told):
    """A picture to stand beside a record."""

    caption: Text
    png: Png


class Opened(_Told):
    """The data that were opened."""

    data: Annotated[DatasetRecord, AfterValidator(_data)]


class Fitted(_Told):
    """A fit: the method's claim, its notes, and its seconds."""

    claim: Annotated[ClaimRecord, AfterValidator(_claim)] | None
    notes: Notes
    seconds: float


class Evaluation(_Told):
    """The figures of an evaluator; fields as in `bench.results.records.Record`.

    `broken` holds the metrics that failed, and how; `pictures` PNGs to stand beside the record, and `evidence` what
    the figures came from; None if it may not be shared, or would be too large.
    """

    scores: dict[Name, Scored] = Field(default={}, max_length=MOST_ENTRIES)
    not_applicable: dict[Name, Text] = Field(default={}, max_length=MOST_ENTRIES)
    broken: dict[Name, Text] = Field(default={}, max_length=MOST_ENTRIES)
    threat_model: dict[Name, Text] = Field(default={}, max_length=MOST_ENTRIES)
    details: Notes = Field(default={})
    seconds: dict[Name, float] = Field(default={}, max_length=MOST_ENTRIES)
    hardware: Notes = Field(default={})
    pictures: dict[PictureName, Drawn] = Field(default={}, max_length=MOST_PICTURES)
    evidence: Evidence | None = None


class Progress(_Told):
    """Progress: a new stage if `total` is 0, else steps of one."""

    kind: Literal["progress"] = "progress"
    stage: Name
    done: int = Field(ge=-MOST_STEPS, le=MOST_STEPS)
    total: int = Field(ge=-MOST_STEPS, le=MOST_STEPS)


class Answer(_Told):
    """The end of a job: its value, or the reason for none."""

    kind: Literal["answer"] = "answer"
    status: Literal["ok", "not-applicable", "failed"]
    value: JsonValue = None
    code: Code | None = None
    reason: Text | None = None
    phase: Phase | None = None

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.status != ("ok" if self.code is None else status_of(self.code)):
            raise ValueError("code must say why there is no value, and status must agree")
        return self
