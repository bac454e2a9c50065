"""Record files: validated on the way out and on the way in, and read only where they prove themselves.

The digest of a record covers every byte of its file, its key is the hash of its inputs, and its inputs name the method,
data, attack and metrics that it speaks of (`bench.results.attested`, `bench.results.identity`). `json_schema()` is what
`bench leaderboard build` publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from pydantic import JsonValue, ValidationError

from bench.results import attested
from bench.results.attested import AlteredError
from bench.results.claim_record import ClaimRecord, claim_record
from bench.results.content_key import content_key
from bench.results.dataset_record import DatasetRecord, FeatureRecord
from bench.results.identity import disagreement
from bench.results.metric_record import MetricRecord, metric_record
from bench.results.plugin_record import PluginRecord
from bench.results.record import SCHEMA, EvidenceRecord, PictureRecord, Record, Status, evidence_record, picture_record
from bench.results.score_record import ScoreRecord, score_record
from bench.results.signing_key import SigningKey

__all__ = [
    "SCHEMA", "ClaimRecord", "DatasetRecord", "EvidenceRecord", "FeatureRecord", "MetricRecord", "NewerRecordError",
    "PictureRecord", "PluginRecord", "Record", "RecordError", "ScoreRecord", "Status", "claim_record", "content_of",
    "dumps", "evidence_record", "json_schema", "loads", "metric_record", "picture_record", "proved", "score_record",
]  # fmt: skip

KIND = "record"


class RecordError(Exception):
    """A record, or what lies beside it, that cannot be used; the text names the file and says what is wrong."""


class NewerRecordError(RecordError):
    """A record of a later schema: it stays as it is, whatever is asked."""


def proved(record: Record, signer: SigningKey | None = None) -> Record:
    """The record with its digest and, by `signer`, its signature."""
    return Record.model_validate(attested.attest(content_of(record), KIND, signer))


def dumps(record: Record) -> str:
    """The text of a record's file; a record without a digest gets one."""
    return attested.written(content_of(record if record.digest else proved(record))).decode()


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
        content = attested.parsed(text.encode())
        _check_schema(content.get("schema"), where)
        attested.check(content, text.encode(), KIND)
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
        by = "nobody" if record.signature is None else f"the key {record.signature.public_key[:16]}"
        raise RecordError(f"{where}: it is signed by {by}, and only records signed by a trusted key are read")
    return record


def content_of(record: Record) -> dict[str, JsonValue]:
    """What a record's file holds: no line for a signature or for evidence where there is none."""
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
