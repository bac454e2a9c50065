"""Copies of records and artefacts that may leave this machine.

The folder is a results folder without a run secret, logs, plans, pages and prepared data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.exchange.export_policy import ExportPolicy, text_objection
from bench.exchange.foreign_folder import KINDS, artefact_folders, header, record_files
from bench.exchange.merge import Offer, copy_artefact, copy_records
from bench.exchange.outcomes import Outcomes
from bench.plugins.spec import UsageError
from bench.results.records import RecordError
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
