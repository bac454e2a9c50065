"""A verdict: what the machine that verified a submission found, signed with the verifier's key.

It lies beside the submission, never in it. Whoever shows tiers names the public keys of the verifiers that they trust:
a verdict that none of them signed, an author's own for one, counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from bench.results import attested
from bench.results.atomic_file import write_atomically
from bench.results.attested import AlteredError
from bench.results.part import Part
from bench.results.record import Record
from bench.results.signing_key import SigningKey, read_public
from bench.results.tier import Tier

KIND = "verdict"
ENDING = ".verdict.json"


def _tier(value: object) -> object:
    return Tier.of_word(value) if isinstance(value, str) else value


class Judged(Part):
    """What was found of one record.

    Args:
        name: The record's file.
        tier: How far it was checked.
        reason: Why no further, or what was looked at.
    """

    name: str
    tier: Annotated[Tier, BeforeValidator(_tier), PlainSerializer(lambda tier: tier.word, return_type=str)]
    reason: str


class Verdict(Part):
    """What was found of a submission.

    Args:
        bundle: SHA-256 of its file, 64 hex digits.
        records: By the digest of each record.
        protocol: The number of the protocol that it was verified by.
        verified_by: The program and its version.
        created: When, in UTC.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    bundle: str = Field(pattern="^[0-9a-f]{64}$")
    records: dict[str, Judged]
    protocol: int
    verified_by: str
    created: str


class VerdictError(Exception):
    """A file that is no verdict of a verifier who is trusted; the text names it and says why."""


def write(verdict: Verdict, path: Path, signer: SigningKey | None) -> None:
    """Put the verdict into a file; without a signer nobody will trust it, and it is for the eyes alone."""
    content = attested.attest(verdict.model_dump(mode="json", by_alias=True), KIND, signer)
    write_atomically(path, attested.written(content))


def read(path: Path, trusted: AbstractSet[str]) -> Verdict:
    """The verdict in a file.

    Raises:
        VerdictError: It is none, was altered, or is signed by nobody whose public key is in `trusted`.
    """
    text = path.read_bytes()
    try:
        signature = attested.parsed(text).get(attested.SIGNATURE)
        content = attested.read(text, KIND)
        found = Verdict.model_validate(content)
    except AlteredError as error:
        raise VerdictError(f"{path}: {error}") from error
    except ValidationError as error:
        raise VerdictError(f"{path}: it is no verdict: {error.errors()[0]['msg']}") from error
    if not isinstance(signature, dict) or signature.get("public_key") not in trusted:
        by = "nobody" if not isinstance(signature, dict) else f"the key {str(signature.get('public_key'))[:16]}"
        raise VerdictError(f"{path}: it is signed by {by}, and only verdicts of trusted verifiers count")
    return found


def verdicts(folder: Path, trusted: AbstractSet[str]) -> Iterator[Verdict | VerdictError]:
    """Every verdict in a folder of submissions, in order; one that does not count as its error."""
    for path in sorted(folder.glob(f"*{ENDING}")):
        try:
            yield read(path, trusted)
        except (VerdictError, OSError) as error:
            yield error if isinstance(error, VerdictError) else VerdictError(f"{path}: {error}")


def verifiers(folder: Path) -> frozenset[str]:
    """The public keys in a folder, one a file (`bench keygen` writes them as FILE.pub)."""
    return frozenset(read_public(path) for path in sorted(folder.glob("*.pub")))


def tier_of(record: Record, verdicts: Iterable[Verdict] = ()) -> Tier:
    """The highest tier that a verdict gives to this record, byte for byte; self-reported where none speaks of it.

    Args:
        record: As it was read: its digest is what verdicts name.
        verdicts: Of verifiers who are trusted (`read`).
    """
    found = (verdict.records[record.digest].tier for verdict in verdicts if record.digest in verdict.records)
    return max(found, default=Tier.SELF_REPORTED)
