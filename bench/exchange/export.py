"""Copies of records and artefacts that may leave this machine.

The folder is a results folder without a run secret, logs, plans, pages and prepared data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.exchange.foreign_folder import KINDS, ArtefactFolder, artefact_folders, header, record_files
from bench.exchange.merge import Offer, Outcomes, copy_artefact, copy_records
from bench.plugins.spec import UsageError
from bench.results.disclosure_check import PATHS, PATIENT, identifying_text, restricted
from bench.results.records import DatasetRecord, Record, RecordError
from bench.results.results import Results
from bench.results.signed_json import AlteredError


def export(results: Results, folder: Path, *, restricted: bool = False) -> Outcomes:
    """Copy what may leave into a folder; newer records replace older ones.

    Args:
        results: The results folder.
        folder: A new folder, or that of an earlier export.
        restricted: Copy figures and fitted models of data that may not be shared, too: their owner says so.

    Raises:
        UsageError: One of the folders lies in the other, or `folder` holds other things or links.
    """
    into = Results(folder.resolve())
    _check(results, into)
    outcomes, policy = Outcomes(), ExportPolicy(restricted)
    for key in results.journal.data_keys():
        if (data := results.journal.data(key)) is not None:
            policy.learn(data)
    copy_records(into, _offers(results, policy, outcomes), "newest", outcomes)
    for artefact in artefact_folders(results):  # after the records, which say which data may be shared
        try:
            artefact.check()
            reason = policy.artefact_objection(artefact)
        except (AlteredError, OSError) as error:
            outcomes.add(artefact.kind, artefact.name, "refused", str(error))
            continue
        if reason:
            outcomes.add(artefact.kind, artefact.name, "stays", reason)
        else:
            copy_artefact(artefact, into, outcomes)
    return outcomes


def _check(results: Results, into: Results) -> None:
    if not results.begun:
        raise UsageError(f"expected a results folder, got {results.root}; `bench run` makes one")
    if into.root == results.root or results.root in into.root.parents or into.root in results.root.parents:
        raise UsageError(f"{into.root} and {results.root} must be folders apart")
    if into.root.exists() and not into.root.is_dir():
        raise UsageError(f"expected a folder to export into, got the file {into.root}")
    known = {into.root / "cells", into.store.root, *(into.store.root / kind for kind in KINDS)}
    if strange := {*into.root.glob("*"), *into.store.root.glob("*")} - known:
        raise UsageError(f"{into.root} holds other things ({min(strange).name}): name a new folder")
    if links := [path for path in into.root.rglob("*") if path.is_symlink()]:
        raise UsageError(f"{into.root} holds links ({links[0]}), which lead elsewhere: name another folder")


def _offers(results: Results, policy: ExportPolicy, outcomes: Outcomes) -> Iterator[Offer]:
    for file in record_files(results):
        try:
            content = file.read()
        except RecordError as error:
            outcomes.add("record", file.name, "refused", str(error))
            continue
        reason = policy.record_objection(content.record)
        if reason := reason or text_objection(header(content.evidence or b"")):
            outcomes.add("record", file.name, "stays", reason)
        else:
            yield Offer.of(content.record, file)


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
