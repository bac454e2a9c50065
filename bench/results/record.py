"""A record: the outcome of one evaluator on one cell."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from math import inf
from types import NoneType
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from bench.contract.seal import ContractError
from bench.contract.sound_score import sound_figure
from bench.plugins.registry import HOME, entries
from bench.plugins.spec import UsageError, parse
from bench.results.reason import Code
from bench.results.record_parts import (
    MOST,
    ClaimRecord,
    Count,
    DatasetRecord,
    MetricRecord,
    Part,
    PluginRecord,
    ScoreRecord,
)
from bench.sandbox import Isolation
from bench.types import CAVEAT

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
