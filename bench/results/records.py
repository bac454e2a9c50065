"""Records: the outcome of an evaluator on a cell, and its file.

The digest covers every byte of the file, the key is the hash of the inputs, and the inputs name the method, data,
attack and metrics. `bench leaderboard build` publishes `json_schema()`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from math import inf
from types import NoneType
from typing import Annotated, Literal, Self, cast

from pydantic import ConfigDict, Field, JsonValue, ValidationError, model_validator

from bench.contract.seal import ContractError
from bench.contract.sound_score import sound_figure
from bench.plugins.registry import HOME, entries
from bench.plugins.spec import UsageError, parse
from bench.results import signed_json
from bench.results.reason import Code
from bench.results.record_parts import (
    MOST,
    ClaimRecord,
    Count,
    DatasetRecord,
    FeatureRecord,
    MetricRecord,
    Part,
    PluginRecord,
    ScoreRecord,
    claim_record,
    metric_record,
    score_record,
)
from bench.results.signed_json import AlteredError, content_key
from bench.results.signing_key import SigningKey
from bench.sandbox import Isolation
from bench.types import CAVEAT

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
    """Inputs of a plug-in: its name, every parameter, and its code's hash."""
    return {role: name, f"{role} parameters": dict(parameters), f"{role} code": code}


def data_inputs(data: DatasetRecord) -> dict[str, JsonValue]:
    """Inputs of the rows that methods get."""
    features: dict[str, JsonValue] = {} if data.features is None else {"features": data.features.fingerprint}
    rows = cast(dict[str, JsonValue], data.rows)
    return {**features, "data": data.fingerprint, "public data": data.public_fingerprint, "rows": rows}


def reader_inputs(data: DatasetRecord) -> dict[str, JsonValue]:
    """Inputs of the reader of images for the evaluators alone."""
    return {} if data.scored_in is None else {"scored in": data.scored_in.fingerprint}


def shown_inputs(*, kind: str, preset: str, data: DatasetRecord) -> dict[str, JsonValue]:
    """Inputs of names in tables, missed by hashes of sizes or pixels."""
    return {"kind": kind, "preset name": preset, "data set": data.name, "public data set": data.public}


def told(record: Record) -> dict[str, JsonValue]:
    """The inputs, by `NAMES`, that the record itself implies; empty without data."""
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
    """A difference between the record and its inputs, in words, or None."""
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


__all__ = [
    "SCHEMA", "ClaimRecord", "DatasetRecord", "EvidenceRecord", "FeatureRecord", "MetricRecord", "NewerRecordError",
    "PictureRecord", "PluginRecord", "Record", "RecordError", "ScoreRecord", "Status", "claim_record", "content_of",
    "dumps", "evidence_record", "json_schema", "loads", "metric_record", "picture_record", "proved", "score_record",
]  # fmt: skip

KIND = "record"


class RecordError(Exception):
    """An unusable record or file beside it, with the reason as text."""


class NewerRecordError(RecordError):
    """A record of a later schema, which stays as it is."""


def proved(record: Record, signer: SigningKey | None = None) -> Record:
    """The record with its digest and, by `signer`, its signature."""
    return Record.model_validate(signed_json.attest(content_of(record), KIND, signer))


def dumps(record: Record) -> str:
    """The text of a record's file, with a digest added if missing."""
    return signed_json.written(content_of(record if record.digest else proved(record))).decode()


def loads(text: str, where: str, trusted: AbstractSet[str] | None = None) -> Record:
    """The record in `text`, once it has proved itself.

    Args:
        text: All of the file.
        where: Its name, for messages.
        trusted: Public keys: a record that none of them signed is refused. None takes unsigned records too.

    Raises:
        NewerRecordError: It is of a later schema.
        RecordError: It is no record of this schema, was altered, contradicts itself, or is not signed as it should be.
    """
    try:
        file = text.encode()
        content = signed_json.parsed(file)
        _check_schema(content.get("schema"), where)
        signed_json.check(content, file, KIND)
        record = Record.model_validate_json(file)
    except AlteredError as error:
        raise RecordError(f"{where}: {error}") from error
    except UnicodeEncodeError as error:
        raise RecordError(f"{where}: it is no UTF-8: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        told = f"{field}: {first['msg']}" if field else first["msg"].removeprefix("Value error, ")
        raise RecordError(f"{where}: {told} (record schema {SCHEMA} expected)") from error
    if record.key != (made := content_key(record.inputs)):
        raise RecordError(f"{where}: its key must be the hash of its inputs, {made}, got {record.key}: it is forged")
    if said := disagreement(record):
        raise RecordError(f"{where}: {said}: it is forged")
    if trusted is not None and not record.signed_by(*trusted):
        by = "no key" if record.signature is None else f"the key {record.signature.public_key[:16]}"
        raise RecordError(f"{where}: it is signed by {by}, and only records signed by a trusted key are read")
    return record


def content_of(record: Record) -> dict[str, JsonValue]:
    """The content of a record's file, without an absent signature or evidence."""
    absent = {name for name in ("signature", "evidence") if getattr(record, name) is None}
    content: dict[str, JsonValue] = record.model_dump(mode="json", by_alias=True, exclude=absent)
    return content


def json_schema() -> Mapping[str, JsonValue]:
    """The JSON Schema of a record file."""
    return Record.model_json_schema(by_alias=True)


def _check_schema(found: object, where: str) -> None:
    if isinstance(found, int) and not isinstance(found, bool) and found > SCHEMA:
        raise NewerRecordError(
            f"{where}: schema: it follows record schema {found}, and this version of Veil Bench reads {SCHEMA}: "
            "read it with a later version; here it is left alone"
        )
    if found != SCHEMA:
        raise RecordError(f"{where}: schema: record schema {SCHEMA} expected, got {found}; `bench run` makes it anew")


LATER = timedelta(days=1)  # of a clock that is wrong


def is_no_past_time(created: str) -> bool:
    """True unless it is a time of the past with a zone.

    >>> [is_no_past_time(text) for text in ("2026-01-02T03:04:05+00:00", "2999-01-01T00:00:00+00:00", "tomorrow")]
    [False, True, True]
    """
    try:
        made = datetime.fromisoformat(created)
    except ValueError:
        return True
    return made.tzinfo is None or made > datetime.now(UTC) + LATER


SCHEMA = 4
CHOSEN: Mapping[str, tuple[type, ...]] = {
    "dataset": (str,), "preset": (str,), "seed": (int,), "features": (str, NoneType), "balance": (bool, NoneType),
}  # fmt: skip
"""Options in every choice of data, with their types; later options may be absent."""
Status = Literal["ok", "not-applicable", "failed", "timed-out"]
RANGES: Mapping[str, tuple[float, float]] = {"AUC": (0, 1), "share": (0, 1), "guesses": (1, inf)}
"""Ranges of figures of this project's metrics, by unit, as far as they are certain."""


class PictureRecord(Part):
    """A picture beside a record, with the hash of its PNG file."""

    caption: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class EvidenceRecord(Part):
    """Hash and size of the evidence that figures are recomputed from."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    bytes: Count


class SignatureRecord(Part):
    """An Ed25519 signature (hex) over a record without its digest."""

    public_key: str
    value: str


class Record(Part):
    """The outcome of one evaluator on one cell.

    Args:
        schema: The number of this schema; it rises whenever a field changes its meaning.
        cell, evaluator: The folder below `cells`, and the file without its ending: the kind, and the attack if any.
        method, attack: The plug-ins as they ran.
        dataset: The data; null in records of earlier versions whose data could not be opened.
        claim: The method's formal guarantee for these data; null if it makes none.
        threat_model: The knowledge of Eve, the attacker, in words.
        details: Notes of evaluator, attack and method beside the figures.
        seconds: By stage, on the wall; `cpu` on the processor, `fit` those of the fit that a cell's records share.
        isolation: The place of method and attack: a sandbox, processes of their own, or (none) the judge's.
        versions: Of Python and of the packages that figures depend on.
        git: The commit, with `-dirty` if files were changed; null outside a checkout.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)

    schema_version: Literal[4] = Field(default=4, alias="schema")
    status: Status
    phase: str | None = Field(default=None, description="where it stopped: fit, release, attack, score, ...")
    code: Code | None = Field(default=None, description="why there are no figures, from a fixed list")
    reason: str | None = None
    cell: str
    evaluator: str
    kind: str = Field(description="the evaluator's own name")
    measured_by: str = Field(description="the evaluator as the command line takes it; of a file its name alone")
    method: PluginRecord
    attack: PluginRecord | None = None
    dataset: DatasetRecord | None = None
    claim: ClaimRecord | None = None
    scheme: dict[str, JsonValue] = Field(default={}, description="what the fitted method says of itself")
    threat_model: dict[str, str] = Field(default={})
    choice: dict[str, str | int | bool | None] = Field(
        description="every option that decides which rows are scored; capitals stand for what is confidential"
    )
    device: str = Field(description="cpu or cuda")
    keys: Count = Field(description="under how many keys releases were looked at")
    pictures: dict[str, PictureRecord] = Field(default={}, description="pictures beside the record, by name")
    evidence: EvidenceRecord | None = Field(
        default=None, description="what the figures were computed from; null where it may not be shared or is too large"
    )
    metrics: dict[str, MetricRecord] = Field(default={}, description="all that it was asked for, with a figure or not")
    scores: dict[str, ScoreRecord] = Field(default={})
    not_applicable: dict[str, str] = Field(default={}, description="metrics without a figure, and why")
    details: dict[str, JsonValue] = Field(default={})
    seconds: dict[str, Annotated[float, Field(ge=0)]] = Field(default={})
    isolation: Isolation = Field(default="none")
    hardware: dict[str, JsonValue] = Field(default={})
    versions: dict[str, str] = Field(default={})
    git: str | None = None
    key: str = Field(description="content address of everything the result depends on")
    inputs: dict[str, JsonValue] = Field(description="what the key was made from; `bench status` compares it")
    created: str
    signature: SignatureRecord | None = Field(default=None, description="of its maker's, where a key was given")
    digest: str | None = Field(default=None, description="SHA-256 over everything else in the file")

    @property
    def preset(self) -> str:
        """The size of the run."""
        return str(self.choice["preset"])

    @property
    def seed(self) -> int:
        """Of splits and training."""
        return int(self.choice["seed"] or 0)

    @property
    def limit(self) -> int | None:
        """Set by --limit: such records never enter a leaderboard."""
        found = self.choice.get("limit")
        return None if found is None else int(found)

    @property
    def caveat(self) -> str:
        """The caveat of the fitted method (`Scheme.notes`); empty for none."""
        found = self.scheme.get(CAVEAT)
        return found if isinstance(found, str) else ""

    def signed_by(self, *public: str) -> bool:
        """True if one of these public keys made the signature."""
        return self.signature is not None and self.signature.public_key in public

    @model_validator(mode="after")
    def _choice_is_whole(self) -> Self:
        for name, kinds in {**CHOSEN, "limit": (int, NoneType)}.items():
            if type(self.choice.get(name)) not in kinds or (name in CHOSEN and name not in self.choice):
                said = repr(self.choice[name])[:60] if name in self.choice else "nothing"
                expected = " or ".join("null" if kind is NoneType else kind.__name__ for kind in kinds)
                raise ValueError(f"choice must give {name} as {expected}, got {said}")
        if beyond := [name for name, value in self.choice.items() if isinstance(value, int) and abs(value) > MOST]:
            raise ValueError(f"choice must give {beyond[0]} as a number less than or equal to {MOST}")
        try:
            parse(str(self.choice["dataset"]))
        except UsageError as error:
            raise ValueError(f"choice must give dataset as it is written on the command line: {error}") from error
        return self

    @model_validator(mode="after")
    def _figures_are_described(self) -> Self:
        if unknown := sorted({*self.scores, *self.not_applicable} - self.metrics.keys()):
            raise ValueError(f"metrics must describe every figure, and say nothing of {', '.join(unknown)}")
        for name, score in self.scores.items():
            metric = self.metrics[name]
            if any((one.better, one.unit) != (metric.better, metric.unit) for one in _with_parts(score)):
                raise ValueError(f"{name}: its direction and its unit must be those of its metric, {metric.better} and "
                                 f"{metric.unit or 'none'}")  # fmt: skip
        return self

    @model_validator(mode="after")
    def _figures_are_sound(self) -> Self:
        for name, score in self.scores.items():
            try:
                sound_figure(score)
            except ContractError as error:  # by the rule that computes it, for a record of any author
                raise ValueError(f"{name}: {error}") from error
            low, high = RANGES.get(score.unit, (-inf, inf))
            if not low <= score.value <= high and _is_ours(self.metrics[name]):
                raise ValueError(f"{name}: {score.unit} must be {low:g} to {high:g}, got {score.value:g}")
        return self

    @model_validator(mode="after")
    def _only_what_ran_has_figures(self) -> Self:
        if self.scores and self.status != "ok":
            raise ValueError(
                f"a record that is {self.status} must have no figures, got {', '.join(sorted(self.scores))}"
            )
        return self


def _with_parts(score: ScoreRecord) -> Iterator[ScoreRecord]:
    yield score
    for part in score.parts.values():
        yield from _with_parts(part)


def _is_ours(metric: MetricRecord) -> bool:
    try:
        found = entries("metrics").get(parse(metric.written).name)
    except UsageError:
        return False
    return found is not None and found.origin == HOME


def picture_record(png: bytes, caption: str) -> PictureRecord:
    """A picture in record form."""
    return PictureRecord(caption=caption, sha256=hashlib.sha256(png).hexdigest())


def evidence_record(content: bytes) -> EvidenceRecord:
    """Evidence in record form."""
    return EvidenceRecord(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
