"""Record files: checks on writing and reading, and the names in inputs.

The digest covers every byte of the file, the key is the hash of the inputs, and the inputs name the method, data,
attack and metrics. `bench leaderboard build` publishes `json_schema()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Literal, cast

from pydantic import JsonValue, ValidationError

from bench.results import signed_json
from bench.results.record import SCHEMA, EvidenceRecord, PictureRecord, Record, Status, evidence_record, picture_record
from bench.results.record_parts import (
    ClaimRecord,
    DatasetRecord,
    FeatureRecord,
    MetricRecord,
    PluginRecord,
    ScoreRecord,
    claim_record,
    metric_record,
    score_record,
)
from bench.results.signed_json import AlteredError, content_key
from bench.results.signing_key import SigningKey

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
        content = signed_json.parsed(text.encode())
        _check_schema(content.get("schema"), where)
        signed_json.check(content, text.encode(), KIND)
        record = Record.model_validate_json(text)
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
