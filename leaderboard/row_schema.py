"""The schema of a board row, for every table, file and badge.

`Field(title=...)` names a field's column in the CSV and parquet tables.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, JsonValue

from bench.results.record_parts import Part
from bench.results.records import ClaimRecord
from leaderboard.board import Row
from leaderboard.entries import WORDS, Entry, EntryStatus
from leaderboard.fitness import mixed
from leaderboard.intake import Intake
from leaderboard.names import slug
from leaderboard.panel import Word
from leaderboard.repeat import command
from leaderboard.standing import SIGNS, standing

Value = str | int | float | None


class Figure(Part):
    """The weakest figure of a metric over certified attacks, or why none.

    Args:
        by: The evaluator that gave it.
        certified: Whether the controls of the attack that gave it hold.
        unrated: Why it is not rated; empty if it is.
        reason: Why there is no figure.
    """

    status: EntryStatus
    value: float | None = None
    low: float | None = None
    high: float | None = None
    prediction_low: float | None = None
    prediction_high: float | None = None
    null: float | None = None
    null_low: float | None = None
    null_high: float | None = None
    p: float | None = None
    n: int | None = None
    by: str = ""
    certified: bool = True
    unrated: str = ""
    reason: str = ""

    @property
    def missing(self) -> str:
        """Why there is no figure, with the status in words."""
        return f"{WORDS[self.status]}: {self.reason}".removesuffix(": ")


class RowName(Part):
    """A row's identity, and its tier.

    Args:
        id: Its name in every address.
        method: As the command line takes it.
        tier: How far others than its author have checked it.
        said: What of it only its author vouches for.
        created: When the last of its records was made, in UTC.
    """

    id: str = Field(title="row")
    dataset: str = Field(title="dataset")
    method: str = Field(title="method")
    preset: str = Field(title="preset")
    seed: int = Field(title="seed")
    tier: str = Field(title="tier")
    said: list[str]
    created: str = Field(title="created")


class RowHead(RowName):
    """A row as the index lists it.

    Args:
        file: Of the row, relative to the board.
        verdict: What the attacks come to, in two words.
        sentence: The same in full, of attacks on pairs and on membership.
    """

    file: str
    verdict: Word = Field(title="verdict")
    sentence: str = Field(title="verdict in full")


class BoardRow(RowHead):
    """A row whole.

    Args:
        asked: The method as the run asked for it, without parameters left at their defaults.
        reference: What it is there for, if it is a reference method; those are never ranked.
        vouched: Whether it is the board's own, or a verifier measured some of it again.
        caveat: What the method says goes with its figures.
        marks: What a reader should know beside them.
        unrated: Why its privacy figures are not rated; empty if they are.
        audit: What an audit has shown of the claim.
        device: The kind of device that it ran on: cpu or cuda.
        timed_on: The machine that throughput was measured on; empty if it was not.
        command: Repeats the row.
        figures: By metric, in the order of the board.
        records: The file of each record, relative to the board, by its name.
        digests: The digest of each record, by its name.
    """

    schema_version: Literal[1] = 1
    asked: str
    reference: str
    vouched: bool
    parameters: dict[str, JsonValue]
    keys: int = Field(title="keys")
    caveat: str = Field(title="caveat")
    marks: list[str]
    unrated: str = Field(title="not rated")
    claim: ClaimRecord | None
    audit: str
    device: str = Field(title="device")
    timed_on: str = Field(default="", title="throughput measured on")
    command: str
    figures: dict[str, Figure]
    records: dict[str, str]
    digests: dict[str, str]

    @property
    def sign(self) -> str:
        """The mark beside its verdict."""
        return SIGNS[self.verdict]

    @property
    def claimed(self) -> dict[str, Value]:
        """The columns of its formal claim; a missing bound is infinite."""
        if self.claim is None:
            return dict.fromkeys(CLAIM)
        bounds = (math.inf if bound is None else bound for bound in (self.claim.epsilon, self.claim.derived))
        return dict(zip(CLAIM, (*bounds, self.claim.delta, self.claim.per), strict=True))

    @property
    def table(self) -> dict[str, Value]:
        """Its values in tables, in the order of `COLUMNS`."""
        values = {title: getattr(self, name) for name, title in TITLES.items()}
        return {name: None if values.get(name) == "" else (values | self.claimed)[name] for name in COLUMNS}


CLAIM = {"claimed epsilon": float, "derived epsilon": float, "delta": float, "claim per": str}
TITLES = {name: field.title for name, field in BoardRow.model_fields.items() if field.title is not None}
COLUMNS: dict[str, type[str] | type[int] | type[float]] = {
    title: (CLAIM | {t: int if BoardRow.model_fields[n].annotation is int else str for n, t in TITLES.items()})[title]
    for title in (
        "row", "dataset", "method", "preset", "seed", "keys", "tier", "verdict", "verdict in full", "not rated",
        "caveat", *CLAIM, "device", "throughput measured on", "created",
    )
}  # fmt: skip
"""The columns of a row in tables, in order, with what each holds; any of its places may be empty."""
FIGURE = {"": float, "low": float, "high": float, "by": str, "missing": str}
"""The columns of a metric in tables; the first has the metric's own name."""


def board_row(row: Row, taken: Intake) -> BoardRow:
    """The row as data."""
    found = standing(row)
    return BoardRow(
        id=row.id, file=row_address(row), dataset=row.dataset, method=row.label, preset=row.preset, seed=row.seed,
        tier=taken.tier(row).word, said=list(row.said), created=row.created, verdict=found.word,
        sentence=found.sentence, asked=row.records[0].method.written, reference=row.records[0].method.role or "",
        vouched=row.vouched, parameters=dict(row.parameters), keys=row.keys, caveat=row.caveat, marks=marks(row),
        unrated=row.unrated, claim=row.claim, audit=row.audited.sentence if row.audited else "", device=row.device,
        timed_on=row.timed_on, command=command(row),
        figures={name: figure(entry) for name, entry in row.entries.items() if entry.status != "not-run"},
        records={record.evaluator: record_address(row, record.evaluator) for record in row.records},
        digests={record.evaluator: str(record.digest) for record in row.records},
    )  # fmt: skip


def figure(entry: Entry) -> Figure:
    """A place of the board as data."""
    score = entry.score
    if score is None:
        return Figure(status=entry.status, reason=entry.reason)
    return Figure(
        status=entry.status, value=score.value, low=score.low, high=score.high, prediction_low=score.prediction_low,
        prediction_high=score.prediction_high, null=score.null, null_low=score.null_low, null_high=score.null_high,
        p=score.p, n=score.n, by=entry.by, certified=entry.certified, unrated=entry.unrated,
    )  # fmt: skip


def marks(row: Row) -> list[str]:
    """Notes beside a row's figures: earlier code, several versions."""
    earlier = [f"earlier code: {', '.join(sorted(row.earlier))}"] if row.earlier else []
    return [*earlier, *filter(None, [mixed(row.records)])]


def row_address(row: Row) -> str:
    """The address of a row's file, relative to the board."""
    return f"api/rows/{row.id}.json"


def record_address(row: Row, evaluator: str) -> str:
    """The address of a record, relative to the board."""
    return f"api/records/{row.id}/{slug(evaluator)}.json"
