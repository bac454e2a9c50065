"""What a row needs before others may compare it: every attack and figure of this project, and each attack's controls.

Whoever chooses what to hand in could leave out the attack that broke the method.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from bench.plugins import registry
from bench.plugins.chosen import choose
from bench.results.records import Record
from bench.runs.plan import evaluators
from bench.submission.finding import Finding
from bench.types import Metric
from bench.workbench.cell import Planned
from bench.workbench.choice import Choice

DONE = ("ok", "not-applicable")
Group = tuple[tuple[str, object], ...]


def wanted(choice: Choice) -> list[Planned]:
    """What `bench run` measures by itself on a method under that choice of data, with this project's own plug-ins."""
    attacks = [choose("attacks", name, choice.preset) for name in registry.own("attacks")]
    chosen = [made for made in attacks if choice.features is not None or made.plugin.scores == "pairs"]
    metrics = [
        name
        for name in registry.own("metrics")
        if _usual(cast("type[Metric[object]]", registry.load("metrics", name)), read=choice.extractor is not None)
    ]
    return evaluators(chosen, metrics)


def _usual(metric: type[Metric[object]], *, read: bool) -> bool:
    return not metric.on_request or (metric.for_features and read)


def incomplete(records: Sequence[Record]) -> Iterator[Finding]:
    """What is missing, a finding a cell: measurements, figures, controls."""
    groups: dict[Group, list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(sorted(record.choice.items())), []).append(record)
    for group in groups.values():
        planned = wanted(Choice.read(group[0].choice))
        cells: dict[str, list[Record]] = {}
        for record in group:
            cells.setdefault(record.cell, []).append(record)
        bare = {cell for cell, part in cells.items() if part[0].method.role is not None}
        lacking = sorted(_without_controls(planned, [record for cell in bare for record in cells[cell]]))
        for cell, part in cells.items():
            if cell in bare:
                continue
            if missing := [*_missing(planned, part), *lacking]:
                yield Finding("incomplete", cell, f"it lacks {_listed(missing)}; {_command(part[0])} measures it")


def _missing(planned: Sequence[Planned], part: Sequence[Record]) -> Iterator[str]:
    there = {record.evaluator: record for record in part if record.status in DONE}
    for each in planned:
        if each.name not in there:
            yield each.name
            continue
        names = {cast("type[Metric[object]]", registry.load("metrics", name)).name for name in each.metrics}
        yield from (f"{name} of {each.name}" for name in sorted(names - there[each.name].metrics.keys()))


def _without_controls(planned: Sequence[Planned], references: Sequence[Record]) -> Iterator[str]:
    there = {(record.method.role, record.evaluator) for record in references if record.status in DONE}
    for each in planned:
        for role in (each.evaluator.controls or ()) if each.attack is not None else ():
            if (role, each.name) not in there:
                yield f"{each.name} on the control that {role}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _command(record: Record) -> str:
    told = f"--method '{record.method.written}' --dataset {record.choice['dataset']} --preset {record.preset}"
    return f"`bench run {told}` without --attack or --metric"
