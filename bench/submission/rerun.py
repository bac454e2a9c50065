"""Measurements of a record made again, from data to figures, under a secret that is given."""

from __future__ import annotations

from collections.abc import Sequence

from bench.isolation import find_isolation
from bench.randomness import Secret
from bench.results.records import Record
from bench.runs.display import Display
from bench.runs.run import run
from bench.runs.run_spec import RunSpec
from bench.submission.leeway import unlike
from bench.submission.refit import Refitted, alike, misfitted
from bench.workbench.currency import planned_of
from bench.workbench.machine import usable_memory, usual_jobs
from bench.workbench.place import Place


def run_again(records: Sequence[Record], secret: Secret, place: Place, display: Display) -> dict[str, Record]:
    """Each measurement as it came out here, by the name of its record (`cell/evaluator`).

    Args:
        records: What to measure.
        secret: What keys are derived from; the results folder stands under it from now on.
        place: Where to work: an empty results folder, or one that stands under that secret.
        display: Shows how far it is.

    Raises:
        UsageError: Something that a record names is not here, or the folder stands under another secret.
    """
    place.results.keep_secret(secret)
    found: dict[str, Record] = {}
    cells: dict[str, list[Record]] = {}
    for record in records:
        cells.setdefault(record.cell, []).append(record)
    for mine in cells.values():  # together: a run opens its data and fits its method once
        summary = run(_spec(mine), place, display)
        found |= {f"{made.cell}/{made.evaluator}": made for made in summary.records}
    return found


def _spec(records: Sequence[Record]) -> RunSpec:
    """What measures these records of one cell again."""
    planned = [planned_of(record) for record in records]
    cell = planned[0][0]
    jobs = min(usual_jobs(cell.device), len(records))
    return RunSpec(
        choices=(cell.choice,), methods=(cell.method,),
        attacks=tuple(dict.fromkeys(each.attack for _, each in planned if each.attack is not None)),
        metrics=tuple(dict.fromkeys(name for _, each in planned for name in each.metrics)), evaluators=(),
        controls=False, device=cell.device, jobs=jobs, timeout=None,
        memory=int(usable_memory() / jobs), overwrite="failed", isolation=find_isolation("auto"),
        keep_releases=False,
    )  # fmt: skip


def disagreement(said: Record, made: Record | None) -> str | None:
    """Where a measurement made again differs from what a record says, beyond its leeway; None where not."""
    if made is None:
        return "it could not be measured here"
    if made.status != said.status:
        return f"it says {said.status}, and here it is {made.status}" + (f": {made.reason}" if made.reason else "")
    if (told := next(misfitted(said, Refitted.of(made)), None)) is not None:
        return told
    if not alike(dict(said.threat_model), dict(made.threat_model)):
        return "what it says that Eve knows is not so here"
    if said.keys != made.keys:
        return f"it says {said.keys} keys, and here they are {made.keys}"
    for what, listed, here in (
        ("has a figure", said.scores, made.scores),
        ("is said not to apply", said.not_applicable, made.not_applicable),
    ):
        if apart := sorted(listed.keys() ^ here.keys()):
            return f"{apart[0]} {what} {'in the record' if apart[0] in listed else 'here'} alone"
    found = ((name, unlike(score, made.scores[name])) for name, score in said.scores.items())
    return next((f"{name}: {apart}" for name, apart in found if apart is not None), None)
