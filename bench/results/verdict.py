"""A verdict: signed findings of the machine that verified a submission.

It lies beside the submission, never in it. Commands that show tiers are given the public keys of trusted verifiers:
a verdict that none of them signed, such as an author's own, counts for nothing. It names whole rows: if a record is
left out, added or swapped, in the row or among its controls, it says nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from bench.disk.atomic_file import read_plain, write_atomically
from bench.disk.disk_errors import unread
from bench.results import signed_json
from bench.results.record_parts import Part, ScoreRecord
from bench.results.records import Record
from bench.results.signed_json import AlteredError
from bench.results.signing_key import SigningKey, read_public


class Tier(IntEnum):
    """The tiers in order: a higher one is a greater number.

    >>> Tier.SELF_REPORTED < Tier.ARITHMETIC_CHECKED < Tier.RE_RUN < Tier.SEALED, Tier.ARITHMETIC_CHECKED.word
    (True, 'arithmetic-checked')
    >>> Tier.of_word("sealed").word, Tier.of_word("replayed").word  # of verdicts by earlier versions
    ('sealed', 'arithmetic-checked')
    """

    SELF_REPORTED = 0
    ARITHMETIC_CHECKED = 1
    RE_RUN = 2
    SEALED = 3

    @property
    def word(self) -> str:
        """The name in records, on pages and on the command line."""
        return self.name.lower().replace("_", "-")

    @property
    def meaning(self) -> str:
        """The checks of the tier, in a sentence."""
        return _MEANINGS[self]

    @classmethod
    def of_word(cls, word: str) -> Tier:
        """The tier that is written so. Raises ValueError for any other word."""
        for tier in cls:
            if tier.word == FORMER.get(word, word):
                return tier
        raise ValueError(f"a tier must be {', '.join(each.word for each in cls)}, got {word!r}")


FORMER = {"replayed": "arithmetic-checked"}
"""Words for tiers in verdicts of earlier versions."""
_MEANINGS = {
    Tier.SELF_REPORTED: "The author's word: others have checked only that the file is whole.",
    Tier.ARITHMETIC_CHECKED: "The figures follow from the author's evidence: whether that was measured is not checked.",
    Tier.RE_RUN: "The verifier made the measurement again under the author's keys, and got the same figure.",
    Tier.SEALED: "The verifier ran it under keys that the author never held, with methods and attacks kept apart.",
}


KIND = "verdict"
ENDING = ".verdict.json"


def _tier(value: object) -> object:
    return Tier.of_word(value) if isinstance(value, str) else value


class Judged(Part):
    """The depth of a record's check, and the reason."""

    digest: str
    tier: Annotated[Tier, BeforeValidator(_tier), PlainSerializer(lambda tier: tier.word, return_type=str)]
    reason: str


class JudgedRow(Part):
    """The findings on a row, for exactly these records together, by evaluator.

    `controls` holds the cells of references that its attacks were held against, each with its records' `fingerprint`;
    `said` its parts that only its author has looked into; `deciding` the records that give the row's figures (empty in
    verdicts of earlier versions, which were about all); `caught` the probability that false figures in one, in two, in
    three of its other records would have been noticed; `draw` the number of the board's draw that its keys follow from.
    """

    records: dict[str, Judged]
    controls: dict[str, str]
    protocol: int
    said: list[str]
    deciding: list[str] = Field(default=[])
    caught: list[Annotated[float, Field(ge=0, le=1)]] = Field(default=[])
    draw: int | None = None

    @property
    def tier(self) -> Tier:
        """The least tier of deciding records; self-reported if any record is."""
        tiers = {name: judged.tier for name, judged in self.records.items()}
        if not tiers or min(tiers.values()) == Tier.SELF_REPORTED:
            return Tier.SELF_REPORTED
        decide = [tiers[name] for name in self.deciding if name in tiers]
        return min(decide or tiers.values())

    def sentences(self) -> list[str]:
        """Sentences on repeated measurements, with the chance of noticing false ones."""
        if not self.caught:
            return []
        count = len(self.records)
        again = sum(judged.tier == Tier.RE_RUN for judged in self.records.values())
        odds = ", ".join(f"{false}: {each:.2f}" for false, each in enumerate(self.caught, 1))
        return [
            f"Measured again: {again} of {count} records, those that decide the row, the attacks "
            f"that are strongest on the board, and others drawn at random. The "
            f"probability that this finds false figures among the others, by the number of false records, is {odds}."
        ]

    def speaks_of(self, records: Sequence[Record], beside: Mapping[str, Sequence[Record]]) -> bool:
        """True if this row was judged as it is, `beside` these cells."""
        return (
            {each.evaluator: each.digest for each in records}
            == {name: one.digest for name, one in self.records.items()}
            and all(each.inputs.get("protocol") == self.protocol for each in records)
            and all(fingerprint(beside.get(cell, ())) == told for cell, told in self.controls.items())
        )


class Verdict(Part):
    """The findings on a submission: its SHA-256, and rows by cell."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_version: Literal[2, 3] = Field(default=3, alias="schema")
    bundle: str = Field(pattern="^[0-9a-f]{64}$")
    rows: dict[str, JudgedRow]
    protocol: int
    verified_by: str
    created: str

    @property
    def tier(self) -> Tier:
        """The tier of the row that was checked least."""
        return min((row.tier for row in self.rows.values()), default=Tier.SELF_REPORTED)


FLOOR = "chance"
"""The attack of random scores: no finding about a method if a real attack ran."""


def deciding(records: Sequence[Record]) -> set[str]:
    """The records of a row that give its figures, by evaluator.

    For each metric the attack with the weakest figure, and the weakest of those that beat chance; random scores only if
    nothing else ran. All that is no attack, except what a clock measures, gives figures of its own.
    """
    done = [record for record in records if record.status == "ok"]
    found = {record.evaluator for record in done if record.attack is None}
    for metric in {name for record in done for name in record.scores}:
        attacks = [record for record in done if record.attack is not None and metric in record.scores]
        real = [record for record in attacks if record.attack is not None and record.attack.name != FLOOR] or attacks
        for some in (real, [record for record in real if _beats_chance(record.scores[metric])]):
            if some:
                found.add(min(some, key=lambda record: (_sign(record, metric), record.evaluator)).evaluator)
    return found


def _sign(record: Record, metric: str) -> float:
    score = record.scores[metric]
    return score.value if score.better == "higher" else -score.value


def _beats_chance(score: ScoreRecord) -> bool:
    return score.null is not None and score.p is not None and score.p < LIKELY and (
        (score.value < score.null) == (score.better == "higher")
    )  # fmt: skip


LIKELY = 0.001


def fingerprint(records: Iterable[Record]) -> str:
    """A hash over the digests of records, for all of them together."""
    return hashlib.sha256(json.dumps(sorted(str(record.digest) for record in records)).encode()).hexdigest()


def standing(path: Path) -> tuple[Tier, str | None] | None:
    """A verdict file's tier and signer, trusted or not; None without file.

    Raises:
        VerdictError: The file is no verdict, was altered, or cannot be read.
    """
    try:
        text = read_plain(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise VerdictError(f"{path.name} cannot be read: {unread(error)}") from error
    found = _read(text, path)
    return found.tier, signed_json.signer(text)


class VerdictError(Exception):
    """A file is no verdict of a trusted verifier; the text explains."""


def write(verdict: Verdict, path: Path, signer: SigningKey | None) -> None:
    """Write a verdict; without a signer, readers see but never trust it."""
    content = signed_json.attest(verdict.model_dump(mode="json", by_alias=True), KIND, signer)
    write_atomically(path, signed_json.written(content))


def read(path: Path, trusted: AbstractSet[str]) -> Verdict:
    """The verdict in a file.

    Raises:
        VerdictError: It is none, was altered, or is signed by no key in `trusted`.
    """
    text = read_plain(path)
    found = _read(text, path)
    if (signer := signed_json.signer(text)) not in trusted:
        by = "no key" if signer is None else f"the key {signer[:16]}"
        raise VerdictError(f"{path.name}: it is signed by {by}, and only verdicts of trusted verifiers count")
    return found


def _read(text: bytes, path: Path) -> Verdict:
    try:
        return Verdict.model_validate(signed_json.read(text, KIND))
    except AlteredError as error:
        raise VerdictError(f"{path.name}: {error}") from error
    except ValidationError as error:
        raise VerdictError(f"{path.name}: it is no verdict: {error.errors()[0]['msg']}") from error


def verdicts(folder: Path, trusted: AbstractSet[str]) -> Iterator[Verdict | VerdictError]:
    """Every verdict in a folder of submissions, in order, or its error."""
    for path in sorted(folder.glob(f"*{ENDING}")):
        try:
            yield read(path, trusted)
        except (VerdictError, OSError) as error:
            yield error if isinstance(error, VerdictError) else VerdictError(f"{path.name}: {unread(error)}")


def verifiers(folder: Path) -> frozenset[str]:
    """Public keys in a folder, one a file, from `bench keys new`."""
    return frozenset(read_public(path) for path in sorted(folder.glob("*.pub")))


def first_judged(records: Sequence[Record], verdicts: Iterable[Verdict]) -> str:
    """The time of the first trusted verdict; sorts last without any."""
    digests = {each.evaluator: each.digest for each in records}
    told = ((verdict.created, verdict.rows.get(records[0].cell)) for verdict in verdicts)
    return min((created for created, row in told if row is not None
                and {name: one.digest for name, one in row.records.items()} == digests), default="~")  # fmt: skip


def judged_row(
    records: Sequence[Record], beside: Mapping[str, Sequence[Record]], verdicts: Iterable[Verdict]
) -> JudgedRow | None:
    """The highest tier's verdict on a row as it stands, or None.

    Args:
        records: All of the row, as they were read.
        beside: Every cell of the source that it came from: a row is judged with the controls that lay beside it.
        verdicts: Verdicts of trusted verifiers (`read`).
    """
    told = (verdict.rows.get(records[0].cell) for verdict in verdicts)
    found = [row for row in told if row is not None and row.speaks_of(records, beside)]
    return max(found, key=lambda row: row.tier, default=None)
