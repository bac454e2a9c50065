"""`bench run`, and `bench audit`, a run that audits alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from rich.table import Table

from bench.api import boards, running
from bench.cli.figure_tables import interim, print_board
from bench.cli.parameters import (
    CHOICE,
    HOW,
    SPREAD,
    USUAL_RUN_FILES,
    Flags,
    RunFiles,
    Share,
    flags,
    read,
    switch,
)
from bench.cli.stop import code
from bench.cli.terminal import to_stdout
from bench.plugins.spec import UsageError
from bench.results.person_text import person_texts
from bench.results.reason import ABSENT
from bench.results.records import Record
from bench.runs.display import Display, duration
from bench.runs.plan import Condition
from bench.runs.request import Request
from bench.runs.run import Summary
from bench.runs.run_spec import RunSpec
from bench.wire.text import shown
from bench.workbench.choice import NO_PUBLIC
from bench.workbench.place import Place

JOBS = ("device", "isolation", "jobs", "timeout", "memory", "overwrite", "keep_releases", "skip_absent")
if TYPE_CHECKING:
    RunFlags = Flags
    AuditFlags = Flags
else:
    RunFlags = flags("RunFlags", ("methods", "attacks", "metrics", "evaluators", "controls", *JOBS), CHOICE)
    AuditFlags = flags("AuditFlags", ("methods", *JOBS), CHOICE)

KEPT: Mapping[Condition, str] = {
    "stale": "were computed by earlier code and stay; --overwrite stale computes them again",
    "weaker": "were made with weaker isolation and stay; --overwrite stale makes them again",
    "changed": "are of other data, sizes, versions or metrics and stay, because of --overwrite never",
    "unreadable": "cannot be read and stay, because of --overwrite never: `bench status` says why",
    "newer": "were written by a later version and stay: read them with that version",
}


def run(
    *,
    chosen: Annotated[RunFlags | None, SPREAD] = None,
    show_all: Annotated[
        bool,
        switch("show the other rows of the folder, of the same data, preset and seed, in the table, too", group=HOW),
    ] = False,
    files: Annotated[RunFiles, SPREAD] = USUAL_RUN_FILES,
) -> int:
    """Run what is missing; 1 if anything failed."""
    place = files.place()

    def show(spec: RunSpec, summary: Summary) -> None:
        shown = _with_others(summary, place) if show_all else summary
        print_board(boards.board(shown.records, place))

    return _perform(files, files.request(chosen, "run", local=files.local), place, show)


def _with_others(summary: Summary, place: Place) -> Summary:
    """The records of a run, with others on the same data."""
    own = {record.cell for record in summary.records}
    sizes = {_size(record) for record in summary.records}
    others = [one for one in running.records_of(place.results) if one.cell not in own and _size(one) in sizes]
    return replace(summary, records=[*summary.records, *others])


def _size(record: Record) -> tuple[object, ...]:
    name = record.choice.get("dataset") if record.dataset is None else record.dataset.name
    return name, record.preset, record.seed, record.limit


def audit(
    *,
    chosen: Annotated[AuditFlags | None, SPREAD] = None,
    confidence: Annotated[
        float,
        read(
            Share, "confidence of the bounds in the table; records keep 0.95", metavar="C", show_default=True, group=HOW
        ),
    ] = 0.95,
    files: Annotated[RunFiles, SPREAD] = USUAL_RUN_FILES,
) -> int:
    """Audit unaudited claims; 1 after failures, violations or wrong noise."""
    if chosen is not None and chosen.values().get("public") == NO_PUBLIC:
        raise UsageError("an audit makes its inputs of public rows: leave --public none out, or name a public set")
    place, violated = files.place(), False

    def show(spec: RunSpec, summary: Summary) -> None:
        nonlocal violated
        for audited in boards.audits(spec, place, confidence):
            to_stdout().print(_table(audited, confidence))
            violated |= any(row.violated for row in audited.rows)

    request = files.request(
        chosen, "audit", local=files.local, metrics=[boards.AUDIT_METRIC], attacks="none", controls=False
    )
    return _perform(files, request, place, show) or int(violated)


def _perform(files: RunFiles, request: Request, place: Place, show: Callable[[RunSpec, Summary], None]) -> int:
    """Run, `show` each part and summarise; or print the plan alone."""
    signer = files.signer(request)
    if files.dry_run:
        return _print_plan(running.plan(request, place))
    result = running.run(
        request, place, running.Observer(Display(figures=interim), _print_absent, show), signer=signer,
        secret=files.secret, draw=files.draw, site=None if files.no_site else files.site or place.results.root / "site",
        executor=files.executor, engine=files.engine,
    )  # fmt: skip
    if result.unsigned:
        print(f"{result.unsigned} are not signed by this key and stay; --overwrite always computes them again")
    if result.page is not None:
        print(f"Page:    {result.page.as_uri()}")
    return _conclude(result, place)


def _print_absent(name: str, reason: str) -> None:
    print(f"left out {name}. {reason}", file=sys.stderr)


def _print_plan(plan: running.Plan) -> int:
    for name, reason in plan.absent.items():
        _print_absent(name, reason)
    for line in plan.idle:
        print(line)
    table = Table("data set", "method", "seed", "evaluator", "state", "would run", "why")
    for job in plan.jobs:
        table.add_row(
            job.dataset, job.method, str(job.seed), job.evaluator, job.standing.state, "yes" if job.runs else "no",
            job.standing.reason,
        )  # fmt: skip
    to_stdout().print(table)
    parts = range(1, len(plan.specs) + 1)
    lines = [(f"{running.part_title(part, plan.specs)}: ", [job.runs for job in plan.jobs if job.part == part])
             for part in parts if len(plan.specs) > 1]  # fmt: skip
    for title, runs in (*lines, ("", [job.runs for job in plan.jobs])):
        end = "" if title else "; nothing was run"
        print(f"{title}{sum(runs)} to run, {len(runs) - sum(runs)} to keep{end}")
    if any(job.runs for job in plan.jobs):
        print(_forecast(plan))
    return 0


def _forecast(plan: running.Plan) -> str:
    """The time and space of a plan, and their basis."""
    found, abreast = plan.forecast, plan.specs[0].jobs
    basis = (
        f"by {found.records} earlier records of this folder" if found.records else
        "by typical jobs on one core: large networks and busy machines take longer"
    )  # fmt: skip
    size = "" if found.size is None else f", and {found.size / 1e6:.1f} MB of records"
    jobs = f"{abreast} job{'' if abreast == 1 else 's'} at a time"
    return f"Forecast: about {duration(found.seconds)} with {jobs}{size}; {basis}"


def _conclude(result: running.RunResult, place: Place) -> int:
    summary = result.summary
    failures = summary.failures
    if summary.records:
        existing = len(summary.records) - summary.computed
        print(f"Records: {shown(place.results.root / 'cells')}")
        print(f"{summary.computed} computed, {existing} already there, {len(failures)} failed; {result.seconds:.0f} s")
    for condition, text in KEPT.items():
        if summary.kept[condition]:
            print(f"{summary.kept[condition]} {text}")
    rows = dict[str, list[Record]]()
    for record in summary.records:
        rows.setdefault(record.cell, []).append(record)
    for cell, records in rows.items():
        for text in person_texts(records):
            print(f"{cell}: {text}")
    for record in failures:
        print(_failure(record, place), file=sys.stderr)
    for name in summary.unopened:
        print(f"not run: {name}: its data could not be opened, for the reason above", file=sys.stderr)
    for name, reason in summary.refused.items():
        print(f"not run: {name}: {reason}", file=sys.stderr)
    if summary.stopped is not None:
        left = summary.planned - len(summary.records)
        print(f"bench: stopped; {left} of {summary.planned} are left: repeat the command to go on", file=sys.stderr)
        return code(summary.stopped)
    if ABSENT & set(summary.unopened.values()):
        return 2
    unread = summary.kept["unreadable"] or summary.kept["newer"]
    return 1 if failures or summary.unopened or summary.refused or unread else 0


def _failure(record: Record, place: Place) -> str:
    log = place.results.log(record.cell, "fit" if record.phase == "fit" else record.evaluator)
    where = f" (log: {shown(log)})" if log.exists() else ""
    return f"{record.status}: {record.cell}/{record.evaluator} in {record.phase}: {record.reason}{where}"


def _table(audited: boards.Audited, confidence: float) -> Table:
    choice = audited.choice
    table = Table(
        title=f"{choice.dataset}, preset {choice.preset}, seed {choice.seed}: claims audited", title_justify="left",
        caption=f"Shown: ε is at least this, with {100 * confidence:g} % confidence; in brackets both ends of the "
        "chosen test's interval, whose upper end is no upper bound on ε. Ceiling: the most that the trials can show.",
        caption_justify="left", show_lines=True,
    )  # fmt: skip
    table.add_column("method", overflow="fold")
    for name in ("claimed ε", "derived ε", "shown ε ≥", "ceiling"):
        table.add_column(name, justify="right")
    table.add_column("verdict", overflow="fold")
    table.add_column("test", overflow="fold")
    for row in audited.rows:
        table.add_row(row.method, row.claimed, row.derived, row.shown, row.ceiling, row.verdict, row.test)
    return table
