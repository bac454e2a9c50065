"""Faults of submitted records, by name, with the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from bench.plugins import registry
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.results.consistency import contradictions
from bench.results.disclosure_check import identifying_text, restricted
from bench.results.records import PluginRecord, Record, is_no_past_time, metric_record
from bench.results.results import Results
from bench.runs.plan import evaluators
from bench.types import Method, Metric
from bench.wire.text import line
from bench.workbench.cell import Planned
from bench.workbench.choice import Choice
from bench.workbench.inputs import COMMITMENT, files_of, planned_of, plugin_record, population, stale

Kind = Literal[
    "altered",
    "limited",
    "restricted",
    "path",
    "file",
    "unprotected",
    "mixed",
    "incomplete",
    "stale",
    "failed",
    "secret",
]
REFUSED: frozenset[Kind] = frozenset({"altered", "limited", "restricted", "path", "mixed"})
"""Faults that refuse a bundle; the others leave a record self-reported."""
DONE = ("ok", "not-applicable")
SHARED = ("choice", "dataset", "device", "method", "claim", "scheme")
"""Fields that all records of a row have in common."""


@dataclass(frozen=True)
class Finding:
    """One fault.

    Args:
        kind: In a word.
        name: The record's file, or its cell.
        reason: The fault and its remedy.
    """

    kind: Kind
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}: {self.reason}"


@dataclass(frozen=True)
class Checked:
    """Records by name, and their faults."""

    records: dict[str, Record]
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> tuple[Finding, ...]:
        """The faults that refuse a bundle."""
        return tuple(finding for finding in self.findings if finding.kind in REFUSED)


def check(results: Results) -> Checked:
    """Look for faults in a results folder or a bundle."""
    findings = [
        Finding("altered", name, f"{results.bare(name, reason)}; take it out and run again")
        for name, reason in results.refused()
    ]
    records = {name: record for name, record in results.records() if isinstance(record, Record)}
    for name, record in records.items():
        findings += _faults(name, record)
    findings += _mixed(records)
    findings += [Finding("altered", name, f"{reason}: run the row again, all of it") for name, reason in
                 _contradictions(records)]  # fmt: skip
    # A file that a stranger's record names is never run here, and a choice of data is built to see what it lacks.
    whole = [record for record in records.values() if record.limit is None and not files_of(record)]
    try:
        findings += _incomplete(whole)
    except UsageError as error:  # a choice of data that cannot be built here
        findings.append(Finding("incomplete", "cells", f"missing measurements cannot be listed: {error}"))
    return Checked(records, tuple(findings))


def summary(findings: Sequence[Finding]) -> list[str]:
    """The findings in words, one line per reason."""
    names: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        names.setdefault((finding.kind, finding.reason), []).append(finding.name)
    return [
        f"{kind}: {first}{f' and {len(others)} more' if others else ''}: {reason}"
        for (kind, reason), (first, *others) in names.items()
    ]


def _faults(name: str, record: Record) -> Iterator[Finding]:
    if record.limit is not None:
        yield Finding("limited", name, f"it was made with --limit {record.limit}; run it again without, in a folder "
                      "of its own")  # fmt: skip
    for reason in restricted(record):
        yield Finding("restricted", name, f"{reason}: take it out, and run it again with this version")
    for reason in identifying_text(record):
        yield Finding("path", name, f"{reason}: have the plug-in not say it, and run it again")
    if is_no_past_time(record.created):
        yield Finding("altered", name, "its date is missing, or lies in the future: set the clock and run it again")
    if record.isolation == "none":
        yield Finding("unprotected", name, "method and attack ran in the judge's own process; run it again without "
                      "--isolation none")  # fmt: skip
    if record.status in ("failed", "timed-out"):
        yield Finding("failed", name, f"{record.status}: {record.reason}; run it again, or with a longer --timeout")
    if files := files_of(record):
        yield Finding("file", name, f"{files[0]} is a file of yours alone: put it into a package (`bench new "
                      "package`), install that and run again")  # fmt: skip
    elif reason := stale(record):
        yield Finding("stale", name, f"{reason}; install the versions that made it, or run it again with --overwrite "
                      "always")  # fmt: skip
    else:
        reasons = [
            *misdescriptions(record),
            *(f"{metric}: {why}" for metric, why in contradictions(record.scores).items()),
        ]
        for reason in reasons:
            yield Finding("altered", name, f"{reason}: take it out and run again")


def _mixed(records: Mapping[str, Record]) -> Iterator[Finding]:
    """Records of different environments, or of one cell under different secrets."""
    if not records:
        return
    first_name, first = next(iter(records.items()))
    of_cell: dict[str, tuple[str, Record]] = {}
    of_data: dict[str, tuple[str, str]] = {}
    for name, record in records.items():
        differences = [
            f"{package} {record.versions.get(package)} and {first.versions.get(package)}"
            for package in sorted({*record.versions, *first.versions})
            if record.versions.get(package) != first.versions.get(package)
        ]
        beside = first_name
        if record.dataset is not None:
            of_its_cell, other = of_cell.setdefault(record.cell, (name, record))
            if record.inputs.get(COMMITMENT) != other.inputs.get(COMMITMENT):
                differences.append("two run secrets")
                beside = of_its_cell
            if (people := population(record)) is not None:
                of_its_data, fingerprint = of_data.setdefault(people[0], (name, people[1]))
                if people[1] != fingerprint:
                    differences.append("people of two run secrets")
                    beside = of_its_data
        if differences:
            yield Finding("mixed", name, f"beside {beside} it was made with {', '.join(differences)}; run all in "
                          "one environment, with --overwrite always")  # fmt: skip


def misdescriptions(record: Record) -> Iterator[str]:
    """Statements of a record that contradict the installed code.

    The record's code must be that installed here. A record whose data were never opened is not checked.
    """
    if record.dataset is None:
        return
    for name, described in record.metrics.items():
        metric = cast("type[Metric[object]]", registry.load("metrics", described.written))
        if metric.name != name or metric_record(metric, described.written) != described:
            yield f"its description of {name} is not that of the metric {described.written}"
    cell, planned = planned_of(record)
    yield from _plugin_differences("method", record.method, plugin_record(cell.method))
    if record.attack is not None and planned.attack is not None:
        yield from _plugin_differences("attack", record.attack, plugin_record(planned.attack))
        knowledge = planned.attack.plugin.knowledge
        if record.dataset.shareable and record.threat_model.get("eve", knowledge) != knowledge:
            yield "its account of Eve's knowledge is not that of the attack"
    # A parameter that records do not show (a path) is part of a folder's name, which then cannot be checked.
    if cell.folder != record.cell and cell.method.placeless == str(cell.method):
        yield f"it lies in another cell than its own, {cell.folder}"
    if (keys := planned.evaluator.keys(cell.choice.sizes)) != record.keys:
        yield f"its evaluator looks at {keys} keys, and the record says {record.keys}"
    if record.claim is not None and cell.method.plugin.claims == Method.claims:
        yield "it holds a formal claim, and its method makes none"


def _plugin_differences(kind: str, stated: PluginRecord, installed: PluginRecord) -> Iterator[str]:
    if stated.role != installed.role:
        yield f"its {kind} is {installed.role or 'no reference'}, and the record says {stated.role or 'no reference'}"
    for name in ("source", "origin"):
        if (told := getattr(stated, name)) != (known := getattr(installed, name)):
            yield f"the {name} of its {kind} is {line(known, 80)!r}, and the record says {line(told, 80)!r}"


def _contradictions(records: Mapping[str, Record]) -> Iterator[tuple[str, str]]:
    """Records of one row that differ in a field of `SHARED`."""
    cells: dict[str, list[tuple[str, Record]]] = {}
    for name, record in records.items():
        cells.setdefault(record.cell, []).append((name, record))
    for row in cells.values():
        done = [(name, record) for name, record in row if record.status == "ok"]
        (first_name, first), *others = done or row[:1]
        for name, record in others:
            if differ := [part for part in SHARED if getattr(record, part) != getattr(first, part)]:
                yield name, f"it and {first_name} are of one row, and differ in {', '.join(differ)}"
        for name, record in row:  # an unfinished record says nothing of the fitted method, or the same
            for part in ("claim", "scheme"):
                if record.status != "ok" and getattr(record, part) and getattr(record, part) != getattr(first, part):
                    yield name, f"it and {first_name} are of one row, and differ in {part}"


def required(choice: Choice, *, recorded: bool = False) -> list[Planned]:
    """The measurements of a complete row: those `bench run` makes by default.

    An author who chose the attacks could leave out the one that broke the method. Of a release by another tool
    (`recorded`) membership is always asked.
    """
    attacks = [configure("attacks", name, choice.preset) for name in registry.own("attacks")]
    members = recorded or choice.features is not None
    usable = [attack for attack in attacks if members or attack.plugin.scores == "pairs"]
    metrics = {name: cast("type[Metric[object]]", registry.load("metrics", name)) for name in registry.own("metrics")}
    all_kinds = recorded or choice.extractor is not None
    usual = [name for name, cls in metrics.items() if not cls.on_request or (cls.for_features and all_kinds)]
    return evaluators(usable, usual)


def _incomplete(records: Sequence[Record]) -> Iterator[Finding]:
    """Missing measurements, figures and controls, one finding per cell."""
    choices: dict[tuple[tuple[str, object], ...], list[Record]] = {}
    for record in records:
        choices.setdefault(tuple(sorted(record.choice.items())), []).append(record)
    for group in choices.values():
        choice = Choice.read(group[0].choice)
        cells: dict[str, list[Record]] = {}
        for record in group:
            cells.setdefault(record.cell, []).append(record)
        references = [record for record in group if record.method.role is not None]
        for cell, row in cells.items():
            if row[0].method.role is not None:
                continue
            planned = required(choice, recorded=_is_recorded(row[0]))
            if missing := [*_missing(planned, row), *sorted(_missing_controls(planned, row, references))]:
                listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
                yield Finding("incomplete", cell, f"it lacks {listed}; {_command(row[0])} measures it")


def _is_recorded(record: Record) -> bool:
    """If another tool released the rows.

    False for a method that is not installed.
    """
    try:
        return configure("methods", record.method.written, record.preset).plugin.releases is not None
    except UsageError:
        return False


def _missing(planned: Sequence[Planned], row: Sequence[Record]) -> Iterator[str]:
    records = {record.evaluator: record for record in row if record.status in DONE}
    for job in planned:
        if job.name not in records:
            yield job.name
            continue
        names = {cast("type[Metric[object]]", registry.load("metrics", name)).name for name in job.metrics}
        yield from (f"{name} of {job.name}" for name in sorted(names - records[job.name].metrics.keys()))


def _missing_controls(planned: Sequence[Planned], row: Sequence[Record], references: Sequence[Record]) -> Iterator[str]:
    """Controls that the row's attacks lack.

    An attack that does not apply needs none, for they would show nothing.
    """
    idle = {record.evaluator for record in row if record.status == "not-applicable"}
    done = {(record.method.role, record.evaluator) for record in references if record.status in DONE}
    for job in planned:
        for role in (job.evaluator.controls or ()) if job.attack is not None and job.name not in idle else ():
            if (role, job.name) not in done:
                yield f"{job.name} on the control that {role}"


def _command(record: Record) -> str:
    options = f"--method '{record.method.written}' --dataset {record.choice['dataset']} --preset {record.preset}"
    return f"`bench run {options}` without --attack or --metric"
