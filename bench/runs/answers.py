"""Messages of a worker: JSON, checked and bounded field by field.

Messages are never unpickled: plug-ins share the worker's process, and could send a pickle that runs code here.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal, Self

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

from bench.contract.evaluator import MOST_NAME, MOST_PICTURES, NAME
from bench.contract.png import check_png
from bench.results.evidence_file import MOST_BYTES
from bench.results.reason import Code, Phase, status_of
from bench.results.record_parts import Part
from bench.results.records import ClaimRecord, DatasetRecord, ScoreRecord
from bench.wire.text import Name, Text, plain, plain_json

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
