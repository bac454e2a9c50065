"""Rules for records and artefacts that leave this machine.

Data that no record here calls shareable are treated as restricted. Their owner can let figures and fitted models of
restricted data leave; releases, pictures, evidence and a plug-in's words about them never do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.exchange.foreign_folder import ArtefactFolder
from bench.results.disclosure_check import PATHS, PATIENT, identifying_text, restricted
from bench.results.records import DatasetRecord, Record

RESTRICTED = "its data may not be shared, or no record says that they may (--restricted exports it)"
NEVER = "a release of data that may not be shared, or of data that no record calls shareable, never leaves"


@dataclass(frozen=True)
class ExportPolicy:
    """A decision on each record and artefact.

    Args:
        restricted: The owner lets figures and fitted models of restricted data leave.
        shareable: Known data, by the fingerprints of their private and public rows.
    """

    restricted: bool
    shareable: dict[tuple[object, object], bool] = field(default_factory=dict)

    def learn(self, data: DatasetRecord, *, shareable: bool | None = None) -> None:
        """Note a statement about data; one "no" outweighs every "yes"."""
        shareable = data.shareable if shareable is None else shareable
        key = (data.fingerprint, data.public_fingerprint)
        self.shareable[key] = self.shareable.get(key, True) and shareable

    def record_objection(self, record: Record) -> str:
        """The reason why a record stays; empty if it may leave."""
        private, data = list(restricted(record)), record.dataset
        if data is not None:
            self.learn(data, shareable=data.shareable and not private)
        if reasons := [*private, *identifying_text(record)]:
            return reasons[0]
        known = data is not None and self.shareable[data.fingerprint, data.public_fingerprint]
        return "" if known or self.restricted else RESTRICTED

    def artefact_objection(self, artefact: ArtefactFolder) -> str:
        """The reason why an artefact stays; empty if it may leave."""
        inputs = artefact.inputs
        if reason := text_objection(artefact.text):
            return reason
        if self.shareable.get((inputs.get("data"), inputs.get("public data")), False):
            return ""
        if artefact.kind == "releases":
            return NEVER
        return "" if self.restricted else RESTRICTED


def text_objection(text: str) -> str:
    """The first path, address or patient's number in a text, in words."""
    return next(_private_words(text), "")


def _private_words(text: str) -> Iterator[str]:
    if path := PATHS.search(text):
        yield f"it holds a path, a file's name or an address: {path[0].strip()!r:.60}"
    if patient := PATIENT.search(text):
        yield f"it holds what looks like a patient's number, {patient[0][:2]}…"
