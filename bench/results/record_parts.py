"""Parts of a record: plug-in, data set, claim, metric, figure and replicates."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated, Literal, Self, cast

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from bench.contract.metric import MOST_DIGITS
from bench.contract.plugin import MOST_UNITS
from bench.contract.sound_score import sound
from bench.types import Exchanges, Metric, PrivacyClaim, Replicates, Role, Score, column_of

MOST = 2**63 - 1
Whole = Annotated[int, Field(ge=-MOST, le=MOST)]
"""A whole number that 64-bit tables (parquet) hold; writing a larger one to such a table fails."""
Count = Annotated[int, Field(ge=0, le=MOST)]
"""How many there are of something."""


class Part(BaseModel):
    """A frozen model of a record, or of a part of one."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PluginRecord(Part):
    """A plug-in as it ran: parameters, paper and a code hash."""

    name: str
    written: str = Field(description="as the command line takes it; capitals stand for what is confidential")
    parameters: dict[str, JsonValue]
    source: str
    code: str
    origin: str = Field(description="the distribution or file that provided the plug-in")
    role: Role | None = Field(default=None, description="what a reference method is there for")


Extent = Annotated[Count, Field(ge=1)]


class FeatureRecord(Part):
    """An extractor as it ran, and a fingerprint of its features.

    `parameters` are all but paths, `dimensions` the numbers in a vector, and `notes` its own words on itself.
    """

    name: str
    parameters: dict[str, JsonValue]
    source: str
    code: str
    origin: str
    stamp: str = Field(description="what else the features depend on: a hash of the weights, or nothing")
    dimensions: Extent
    fingerprint: str = Field(description="over the vectors of all splits; of what only reads, over what it depends on")
    notes: dict[str, JsonValue] = Field(default={})


class DatasetRecord(Part):
    """The scored data: counts and fingerprints, never pixels, paths or identifiers.

    `name` holds the parameters that make it another set, and `parameters` all but paths. `public` and its fingerprint
    are "none" if there are no public rows; `shape` is of a row: channels, height and width, or columns.
    """

    name: str
    parameters: dict[str, JsonValue]
    fingerprint: str
    public: str
    public_fingerprint: str
    rows: dict[str, Count] = Field(
        description="rows in public, private, control and test; of candidates too if they are others"
    )
    subjects: dict[str, Count] = Field(description="people in each split; empty where unknown")
    shape: list[Extent]
    findings: list[str]
    attributes: dict[str, list[str]] = Field(
        default={},
        description="groups of ten people or more that rows belong to beside labels, by attribute: figures by group "
        "bear their names",
    )
    shareable: bool
    skipped: Count = Field(description="corrupt images left out on request")
    notes: list[str]
    features: FeatureRecord | None = Field(default=None, description="what turned the images into the rows scored here")
    scored_in: FeatureRecord | None = Field(
        default=None, description="what read raw and released images for the linear probe and the figures on sets"
    )

    @property
    def counts(self) -> str:
        """Number of rows of each part, in words, in the record's order."""
        return ", ".join(f"{self.rows[part]} {part}" for part in sorted(self.rows))

    def of_candidates(self, counts: Mapping[str, int]) -> int:
        """Eve's part of `rows` or `subjects`; 0 if unknown."""
        return counts.get("candidates", counts.get("private", 0))

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Fingerprints of the rows, public and private, prepared and read."""
        readers = tuple("" if reader is None else reader.fingerprint for reader in (self.features, self.scored_in))
        return (self.fingerprint, self.public, self.public_fingerprint, *readers)


class PersonClaim(Part):
    """A claim for all images of one person.

    Args:
        images: The most images of one person; equal images are of one person, too.
        epsilon, delta: The bound for all of them; epsilon is null if no finite one follows.
        how: Sequential composition of releases made each of one image; else group privacy, of Gaussian noise by mu.
    """

    images: Extent
    epsilon: Annotated[float, Field(gt=0)] | None
    delta: Annotated[float, Field(ge=0, le=1)]
    how: Literal["composed", "by group privacy", "by group privacy of Gaussian noise"]


class ClaimRecord(Part):
    """A formal privacy claim: stated and derived bounds, null if not finite.

    Args:
        unit, units: The part that differs between neighbours, and how many of it at most.
        epsilon, derived: The bound that the authors state, and that of the mechanism as it runs here.
        delta: The failure probability of both.
        basis: The source of the claim, and the derivation of its bound.
        neighbours: They differ in the content of a unit, or by one unit more or less.
        person: The bound for all images of one person; null in older records.
    """

    unit: Literal["image", "pixel", "record"]
    epsilon: Annotated[float, Field(gt=0)] | None
    derived: Annotated[float, Field(gt=0)] | None
    delta: Annotated[float, Field(ge=0, le=1)]
    assumptions: str
    basis: str
    neighbours: Literal["replaced", "added"] = "replaced"
    units: Annotated[int, Field(ge=1, le=MOST_UNITS, strict=True)] = 1
    person: PersonClaim | None = None

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """The record as it was read; older ones lack `units` and `person`."""
        content: dict[str, JsonValue] = write(self)
        later = ("units", "person")
        return {name: value for name, value in content.items() if name not in later or name in self.model_fields_set}

    @property
    def whole(self) -> bool:
        """True if the bounds are for a whole row, and so comparable."""
        return self.unit in ("image", "record")

    @property
    def per(self) -> str:
        """The unit of the bounds: "image", "16 pixels"."""
        return self.unit if self.units == 1 else f"{self.units} {self.unit}s"


def claim_record(claim: PrivacyClaim | None) -> ClaimRecord | None:
    """A PrivacyClaim in record form."""
    if claim is None:
        return None
    bounds = claim.epsilon, claim.epsilon if claim.derived is None else claim.derived
    epsilon, derived = (bound if math.isfinite(bound) else None for bound in bounds)
    return ClaimRecord(
        unit=claim.unit, epsilon=epsilon, derived=derived, delta=claim.delta, assumptions=claim.assumptions,
        basis=claim.basis, neighbours=claim.neighbours, units=claim.units,
    )  # fmt: skip


class MetricRecord(Part):
    """A metric's column, unit, and better direction for the data owner."""

    written: str = Field(description="the metric as the command line takes it; of a file its name alone")
    title: str
    meaning: str
    group: str = Field(description="the header above its column")
    digits: int | None = Field(
        ge=0, le=MOST_DIGITS, description="decimals to print; null for about three significant digits"
    )
    chance: str = Field(description="the end of the sentence 'Chance gives ...'; empty where chance gives nothing")
    order: Whole = Field(description="place within the group, lower first")
    better: Literal["higher", "lower"]
    unit: str


def metric_record(cls: type, written: str) -> MetricRecord:
    """A metric class in record form, as it was written.

    Raises:
        TypeError: It carries no column.
        ValueError: Its direction is none.
    """
    column, metric = column_of(cls), cast("type[Metric[object]]", cls)
    return MetricRecord(written=written, **asdict(column), better=metric.better, unit=metric.unit)


MOST_REPLICATES = 100_000
"""Numbers of a table of replicates."""
LARGEST = 1e30
"""Differences and squares of such numbers are still finite."""
NUMBER = "<f4"


def _without(content: dict[str, JsonValue], name: str) -> dict[str, JsonValue]:
    return {key: value for key, value in content.items() if key != name}


class ReplicatesRecord(Part):
    """A figure by key and on resampled people, compared by `bench compare`.

    Args:
        by_key: The figure of each key on all people.
        resampled: The figure of each key (rows) on each resample of the people (columns), alike for every record of
            the same rows: 32-bit floats, little-endian, in base64.
        degrees: Degrees of freedom of the spread over resamples.
        people: A hash of the resamples: figures are compared if it is the same.
        scale: The scale on which the figure is nearly normal.
        trainings: The number of the attacker's training by key; empty if it trains nothing, or in older records.
    """

    by_key: list[float] = Field(min_length=1, max_length=MOST_REPLICATES)
    resampled: str = Field(max_length=6 * MOST_REPLICATES)
    degrees: float = Field(gt=0)
    people: str = Field(pattern="^[0-9a-f]{16}$")
    scale: Literal["plain", "log", "share"]
    trainings: list[Count] = Field(default=[], max_length=MOST_REPLICATES)

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """The table as read: older ones have no trainings."""
        content: dict[str, JsonValue] = write(self)
        return content if self.trainings or "trainings" in self.model_fields_set else _without(content, "trainings")

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        table, keys = self._table(), len(self.by_key)
        if table.size % keys or table.size < 2 * keys:
            raise ValueError(f"resampled must be a table of {keys} rows and at least two columns")
        if len(self.trainings) not in (0, keys):
            raise ValueError(f"expected the training of each of {keys} keys, or none, got {len(self.trainings)}")
        numbers = np.concatenate((np.asarray(self.by_key), table.astype(np.float64)))
        if not (np.abs(numbers) < LARGEST).all() or (self.scale == "log" and not (numbers > 0).all()):
            raise ValueError(f"figures and their resamples must be below {LARGEST:g}, and above 0 on a log scale")
        return self

    def read(self) -> Replicates:
        """The replicates."""
        table = self._table().astype(np.float64).reshape(len(self.by_key), -1)
        return Replicates(self.by_key, table.tolist(), self.degrees, self.people, self.scale, tuple(self.trainings))

    def _table(self) -> np.ndarray:
        try:
            content = base64.b64decode(self.resampled, validate=True)
        except binascii.Error:
            raise ValueError("resampled must be base64") from None
        if len(content) % 4:
            raise ValueError("resampled must hold 32-bit floats")
        return np.frombuffer(content, dtype=NUMBER)


def replicates_record(found: Replicates | None) -> ReplicatesRecord | None:
    """Replicates in record form; None without any that can be compared."""
    if found is None or not found.people:
        return None
    table = np.asarray(found.resampled, dtype=NUMBER)
    if table.size > MOST_REPLICATES:
        return None
    made = ReplicatesRecord(
        by_key=list(found.by_key), resampled=base64.b64encode(table.tobytes()).decode(), degrees=found.degrees,
        people=found.people, scale=found.scale,
    )  # fmt: skip
    return made.model_copy(update={"trainings": list(found.trainings)}) if found.trainings else made


TAIL = "<u2"
MOST_EXCHANGES = 2**16 - 1


class ExchangesRecord(Part):
    """A primary figure's ranks among exchanges of people.

    Args:
        tails: By exchange, the true links first: how many of all have a figure at least as bad for the owner, itself
            among them: 16-bit whole numbers, little-endian, in base64.
        spread: The figure's standard deviation over the exchanges.
        people: A hash of the exchanges: attacks are judged together if it is the same.
    """

    tails: str = Field(max_length=3 * MOST_EXCHANGES)
    spread: float = Field(ge=0)
    people: str = Field(pattern="^[0-9a-f]{16}$")

    @model_validator(mode="after")
    def _is_a_list(self) -> Self:
        self.read()
        return self

    def read(self) -> Exchanges:
        """The exchanges."""
        try:
            content = base64.b64decode(self.tails, validate=True)
        except binascii.Error:
            raise ValueError("tails must be base64") from None
        if len(content) % 2:
            raise ValueError("tails must hold 16-bit numbers")
        return Exchanges(np.frombuffer(content, dtype=TAIL).tolist(), self.spread, self.people)


def exchanges_record(found: Exchanges | None) -> ExchangesRecord | None:
    """Exchanges in record form; None without any or beyond 16 bits."""
    if found is None or len(found.tails) > MOST_EXCHANGES:
        return None
    tails = np.asarray(found.tails, dtype=TAIL)
    return ExchangesRecord(tails=base64.b64encode(tails.tobytes()).decode(), spread=found.spread, people=found.people)


class ScoreRecord(Part):
    """A figure, its chance level, and 95 % intervals.

    Args:
        low, high: Confidence interval over people and keys; null if none can be given, and `note` says why.
        prediction_low, prediction_high: Prediction interval under one further key; null for fewer than two keys.
        better: The direction that is better for the data owner.
        unit: What the figure counts.
        parts: The same figure by finding, class or level.
    """

    value: float
    low: float | None
    high: float | None
    n: Count = Field(description="rows, grid rows or repeats behind the figure")
    null: float | None = Field(description="what chance gives, where known")
    null_low: float | None
    null_high: float | None
    p: float | None = Field(
        default=None,
        description="probability that chance does as well for the attacker (one of the sides), or gives a figure at "
        "least so far from it (two)",
    )
    better: Literal["higher", "lower"]
    unit: str
    note: str = ""
    prediction_low: float | None = None
    prediction_high: float | None = None
    replicates: ReplicatesRecord | None = Field(
        default=None, description="by key and resample; of the whole, not parts"
    )
    parts: dict[str, ScoreRecord] = Field(default={})
    sides: Literal[1, 2] = Field(default=2, description="of p")
    exchanges: ExchangesRecord | None = Field(
        default=None, description="of an attack's primary figure: its ranks among exchanges of people"
    )

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """The figure as read: older ones have neither `sides` nor `exchanges`."""
        content: dict[str, JsonValue] = write(self)
        later = {"sides": self.sides == 2, "exchanges": self.exchanges is None}
        return {name: value for name, value in content.items() if not later.get(name) or name in self.model_fields_set}

    @property
    def chance_does_as_well(self) -> float | None:
        """One-sided p in the attacker's favour; two-sided ones halve towards the figure."""
        if self.p is None or self.sides == 1 or self.null is None:
            return self.p
        harms = self.value != self.null and (self.value < self.null) == (self.better == "higher")
        return self.p / 2 if harms else 1 - self.p / 2


def score_record(score: Score, *, better: Literal["higher", "lower"], unit: str) -> ScoreRecord:
    """A Score in record form. Raises ContractError if it is not `sound`."""
    return _recorded(sound(score), better, unit)


def _recorded(score: Score, better: Literal["higher", "lower"], unit: str) -> ScoreRecord:
    made = ScoreRecord(
        value=score.value, low=score.low, high=score.high, n=score.n,
        null=score.null, null_low=score.null_low, null_high=score.null_high, p=score.p,
        better=better, unit=unit, note=score.note, prediction_low=score.prediction_low,
        prediction_high=score.prediction_high, replicates=replicates_record(score.replicates),
        parts={
            name: _recorded(replace(part, replicates=None, exchanges=None), better, unit)
            for name, part in sorted(score.parts.items())
        },
    )  # fmt: skip
    later = {"sides": (score.sides, 2), "exchanges": (exchanges_record(score.exchanges), None)}
    return made.model_copy(update={name: value for name, (value, usual) in later.items() if value != usual})
