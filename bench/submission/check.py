"""What is wrong with records that are to be handed in, or were: by name, and with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.plugins.spec import UsageError
from bench.results.disclosure_check import identifying_text, restricted
from bench.results.record import is_no_past_time
from bench.results.records import Record
from bench.results.results import Results
from bench.submission.complete import incomplete
from bench.submission.described import apart, misdescribed
from bench.submission.finding import Finding
from bench.workbench.currency import files_of, stale
from bench.workbench.inputs import COMMITMENT


@dataclass(frozen=True)
class Checked:
    """Records by name, and what is wrong with them."""

    records: dict[str, Record]
    findings: tuple[Finding, ...]


def check(results: Results) -> Checked:
    """Look at everything in a results folder or in a bundle."""
    findings = [
        Finding("altered", name, f"{results.bare(name, reason)}; take it out and run again")
        for name, reason in results.refused()
    ]
    records = {name: found for name, found in results.records() if isinstance(found, Record)}
    for name, record in records.items():
        findings += _of_one(name, record)
    findings += _mixed(records)
    findings += [Finding("altered", name, f"{said}: run the row again, all of it") for name, said in apart(records)]
    # A file that a stranger's record names is never run here, and a choice of data is built to see what it lacks.
    whole = [record for record in records.values() if record.limit is None and not files_of(record)]
    try:
        findings += incomplete(whole)
    except UsageError as error:  # a choice of data that cannot be built here
        findings.append(Finding("incomplete", "cells", f"what it lacks cannot be said: {error}"))
    return Checked(records, tuple(findings))


def _of_one(name: str, record: Record) -> Iterator[Finding]:
    if record.limit is not None:
        yield Finding("limited", name, f"it was made with --limit {record.limit}; run it again without, in a folder "
                      "of its own")  # fmt: skip
    yield from _private(name, record)
    if is_no_past_time(record.created):
        yield Finding("altered", name, "it says no time, or one that has not come yet, as when it was made: set the "
                      "clock and run it again")  # fmt: skip
    if record.isolation == "none":
        yield Finding("unprotected", name, "method and attack ran in the judge's own process; run it again without "
                      "--isolation none")  # fmt: skip
    if record.status in ("failed", "timed-out"):
        yield Finding("failed", name, f"{record.status}: {record.reason}; run it again, or with a longer --timeout")
    if files := files_of(record):
        yield Finding("file", name, f"{files[0]} is a file, which nobody else has: put it into a package "
                      "(`bench new package`), install that and run again")  # fmt: skip
        return
    if why := stale(record):
        yield Finding("stale", name, f"{why}; install what it was made with, or run it again with --overwrite always")
        return
    for said in misdescribed(record):
        yield Finding("altered", name, f"{said}: take it out and run again")


def _private(name: str, record: Record) -> Iterator[Finding]:
    """What may never leave the author's machine."""
    for said in restricted(record):
        yield Finding("restricted", name, f"{said}: take it out, and run it again with this version")
    for said in identifying_text(record):
        yield Finding("path", name, f"{said}: have the plug-in not say it, and run it again")


def _mixed(records: dict[str, Record]) -> Iterator[Finding]:
    """Records that were not made by one environment, under one secret."""
    if not records:
        return
    first_name, first = next(iter(records.items()))
    for name, record in records.items():
        apart = [
            f"{package} {record.versions.get(package)} and {first.versions.get(package)}"
            for package in sorted({*record.versions, *first.versions})
            if record.versions.get(package) != first.versions.get(package)
        ]
        if record.inputs.get(COMMITMENT) != first.inputs.get(COMMITMENT):
            apart.append("two run secrets")
        if apart:
            yield Finding("mixed", name, f"beside {first_name} it was made with {', '.join(apart)}; run all in one "
                          "environment, with --overwrite always")  # fmt: skip
