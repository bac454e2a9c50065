"""The result schema: one JSON file an evaluator, validated on the way out and on the way in.

`SCHEMA` rises whenever a field changes its meaning; `json_schema()` is what `bench leaderboard build` publishes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from bench.contract.metric import MOST_DIGITS
from bench.types import Metric, PrivacyClaim, Role, Score, column_of

SCHEMA = 2
Status = Literal["ok", "not-applicable", "failed", "timed-out"]


class RecordError(Exception):
    """A record file that does not follow the schema; the text names the file and the field."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ScoreRecord(_Part):
    """A figure with its 95 % interval, what chance gives (and its 95 % interval), and the direction an owner wants.

    Args:
        value: The figure.
        low, high: Its 95 % interval; null where none can be given, and `note` says why.
        null_low, null_high: The 95 % interval of what chance gives.
        better: The direction that is better for the data owner.
        unit: What the figure counts.
        note: How the interval came about, or why there is none.
        parts: The same figure by finding, class or level, where there are several.
    """

    value: float
    low: float | None
    high: float | None
    n: int = Field(description="rows, grid rows or repeats behind the figure")
    null: float | None = Field(description="what chance gives, where known")
    null_low: float | None
    null_high: float | None
    p: float | None = Field(default=None, description="probability under chance of a figure at least so far from it")
    better: Literal["higher", "lower"]
    unit: str
    note: str = ""
    parts: dict[str, ScoreRecord] = {}


class MetricRecord(_Part):
    """A metric as tables show it, from the column that it carries, with the direction an owner wants and its unit.

    Args:
        title: What stands in the header.
        meaning: What the figure measures, in a sentence.
        better: The direction that is better for the data owner.
        unit: What the figure counts.
    """

    written: str = Field(description="the metric as the command line takes it; of a file its name alone")
    title: str
    meaning: str
    group: str = Field(description="the header above its column")
    digits: int | None = Field(
        ge=0, le=MOST_DIGITS, description="decimals to print; null for about three significant digits"
    )
    chance: str = Field(description="the end of the sentence 'Chance gives ...'; empty where chance gives nothing")
    order: int = Field(description="place within the group, lower first")
    better: Literal["higher", "lower"]
    unit: str


class PluginRecord(_Part):
    """A plug-in as it ran: every parameter, the paper, and a hash of its source and of what it imports from here.

    Args:
        name: As registered, or the file's name and the class.
        parameters: Every one, those at their defaults too.
        source: The paper.
        code: The hash.
    """

    name: str
    written: str = Field(description="as the command line takes it; capitals stand for what is confidential")
    parameters: dict[str, JsonValue]
    source: str
    code: str
    origin: str = Field(description="the distribution or file that provided the plug-in")
    role: Role | None = Field(default=None, description="what a reference method is there for")


class ClaimRecord(_Part):
    """A formal privacy claim: the stated bound, and the one derived here; null where no finite bound holds.

    Args:
        unit: What one neighbouring change alters.
        epsilon: The bound that the method's authors state.
        derived: The bound that follows from the mechanism as it runs here.
        delta: The failure probability of both.
        assumptions: What must be true for the claim to hold.
        basis: Where the claim comes from, and how the derived bound follows.
    """

    unit: Literal["image", "pixel", "record"]
    epsilon: float | None
    derived: float | None
    delta: float
    assumptions: str
    basis: str

    @model_validator(mode="before")
    @classmethod
    def _derived_as_claimed(cls, found: object) -> object:
        """Records from before the derived bound had a field of its own stated the derived one."""
        return (
            {**found, "derived": found.get("epsilon")} if isinstance(found, dict) and "derived" not in found else found
        )


class FeatureRecord(_Part):
    """An extractor as it ran, and a fingerprint of what it gave for the rows of the data set.

    Args:
        name: As registered.
        parameters: Every one, but none that is a path.
        source: The paper.
        code: A hash of its source and of what it imports from here.
        origin: The distribution or file that provided it.
        dimensions: Numbers in a vector.
        notes: What the fitted extractor says of itself.
    """

    name: str
    parameters: dict[str, JsonValue]
    source: str
    code: str
    origin: str
    stamp: str = Field(description="what else the features depend on: a hash of the weights, or nothing")
    dimensions: int
    fingerprint: str = Field(description="over the vectors of all splits; of what only reads, over what it depends on")
    notes: dict[str, JsonValue] = {}


class DatasetRecord(_Part):
    """What was scored: counts and fingerprints, never pixels, paths or identifiers.

    Args:
        name: The data set, with the parameters that make it another set.
        parameters: Every one, but none that is a path.
        fingerprint: A hash of the prepared rows.
        public, public_fingerprint: The public set.
        shape: Of a row: channels, height and width, or columns.
        findings: Names of the label columns.
        shareable: Whether pixels may leave the machine.
        notes: What a reader should know of the data.
    """

    name: str
    parameters: dict[str, JsonValue]
    fingerprint: str
    public: str
    public_fingerprint: str
    rows: dict[str, int] = Field(description="rows in public, private, control and test")
    subjects: dict[str, int] = Field(description="people in each split; empty where unknown")
    shape: list[int]
    findings: list[str]
    shareable: bool
    skipped: int = Field(description="corrupt images left out on request")
    notes: list[str]
    features: FeatureRecord | None = Field(default=None, description="what turned the images into the rows scored here")
    scored_in: FeatureRecord | None = Field(
        default=None, description="what read raw and released images for the linear probe and the figures on sets"
    )

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """What tells these rows, public and private, prepared and read, from any others."""
        readers = tuple("" if reader is None else reader.fingerprint for reader in (self.features, self.scored_in))
        return (self.fingerprint, self.public, self.public_fingerprint, *readers)


class Record(_Part):
    """The outcome of one evaluator on one cell (method x data set x preset x seed).

    Args:
        schema: The number of this schema; it rises whenever a field changes its meaning.
        status: How it ended.
        reason: Why there are no figures, in words.
        cell: The folder of the cell, below `cells`.
        evaluator: The file of the record, without its ending: the kind, and the attack if there is one.
        kind: What was done to the cell.
        method, attack: The plug-ins as they ran.
        dataset: The data; null where they could not be opened.
        claim: The method's formal guarantee for these data; null where it makes none.
        threat_model: What Eve knew, in words.
        preset: The size of the run.
        seed: Decides the splits and what else is drawn.
        keys: Keys that the figures are taken over.
        scores: Figures by metric.
        details: What evaluator, attack and method say beside the figures.
        seconds: By stage.
        hardware: The machine, without its name.
        versions: Of Python and of the packages that figures depend on.
        git: The commit, with `-dirty` where files were changed; null outside a checkout.
        created: When, in UTC.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)

    schema_version: Literal[2] = Field(default=2, alias="schema")
    status: Status
    phase: str | None = Field(default=None, description="where it stopped: fit, release, attack, score, ...")
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
    threat_model: dict[str, str] = {}
    choice: dict[str, str | int | bool | None] = Field(
        description="every option that decides which rows are scored; capitals stand for what is confidential"
    )
    device: str = Field(description="cpu or cuda")
    keys: int = Field(description="under how many keys releases were looked at")
    pictures: dict[str, str] = Field(default={}, description="pictures beside the record: name and caption")
    metrics: dict[str, MetricRecord] = Field(default={}, description="all that it was asked for, with a figure or not")
    scores: dict[str, ScoreRecord] = {}
    not_applicable: dict[str, str] = Field(default={}, description="metrics without a figure, and why")
    details: dict[str, JsonValue] = {}
    seconds: dict[str, float] = {}
    hardware: dict[str, JsonValue] = {}
    versions: dict[str, str] = {}
    git: str | None = None
    key: str = Field(description="content address of everything the result depends on")
    inputs: dict[str, JsonValue] = Field(description="what the key was made from; `bench status` compares it")
    created: str

    @property
    def preset(self) -> str:
        """How large the run was."""
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

    @model_validator(mode="after")
    def _figures_are_described(self) -> Self:
        if unknown := sorted({*self.scores, *self.not_applicable} - self.metrics.keys()):
            raise ValueError(f"metrics must describe every figure, and say nothing of {', '.join(unknown)}")
        return self


def metric_record(cls: type, written: str) -> MetricRecord:
    """A metric class in record form, as it was written.

    Raises:
        TypeError: It carries no column.
        ValueError: Its direction is none.
    """
    column, metric = column_of(cls), cast("type[Metric[object]]", cls)
    return MetricRecord(written=written, **asdict(column), better=metric.better, unit=metric.unit)


def score_record(score: Score, *, better: Literal["higher", "lower"], unit: str) -> ScoreRecord:
    """A Score in record form; raises ValueError where the figure is not finite."""
    if not math.isfinite(score.value):
        raise ValueError(f"a score must be finite, got {score.value}; raise NotApplicable with the reason instead")
    return ScoreRecord(
        value=score.value, low=score.low, high=score.high, n=score.n,
        null=score.null, null_low=score.null_low, null_high=score.null_high, p=score.p,
        better=better, unit=unit, note=score.note,
        parts={name: score_record(part, better=better, unit=unit) for name, part in sorted(score.parts.items())},
    )  # fmt: skip


def claim_record(claim: PrivacyClaim | None) -> ClaimRecord | None:
    """A PrivacyClaim in record form."""
    if claim is None:
        return None
    bounds = claim.epsilon, claim.epsilon if claim.derived is None else claim.derived
    epsilon, derived = (bound if math.isfinite(bound) else None for bound in bounds)
    return ClaimRecord(
        unit=claim.unit, epsilon=epsilon, derived=derived, delta=claim.delta, assumptions=claim.assumptions,
        basis=claim.basis,
    )  # fmt: skip


def dumps(record: Record) -> str:
    """JSON text with sorted keys."""
    return json.dumps(record.model_dump(mode="json", by_alias=True), indent=2, sort_keys=True) + "\n"


def loads(text: str, where: str) -> Record:
    """The record in `text`; RecordError names `where` and the first field that is wrong."""
    try:
        return Record.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        raise RecordError(f"{where}: {field}: {first['msg']} (record schema {SCHEMA} expected)") from error


def json_schema() -> Mapping[str, JsonValue]:
    """The JSON Schema of a record file."""
    return Record.model_json_schema(by_alias=True)
