"""`bench run`, and `bench audit`: a run that audits alone, with a table of claims."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Table

from bench import api
from bench.cli.figure_tables import interim, print_board
from bench.cli.parameters import (
    CHOICE,
    HOW,
    RESULTS,
    SPREAD,
    WHERE,
    Config,
    DataRoots,
    Flags,
    ResultsFolder,
    Share,
    Sign,
    Site,
    Suite,
    flags,
    read,
    switch,
)
from bench.cli.stop import code
from bench.cli.terminal import to_stdout
from bench.plugins.spec import UsageError
from bench.results.reason import ABSENT
from bench.results.records import Record
from bench.results.signing_key import SigningKey
from bench.runs.display import Display
from bench.runs.engine import Executing
from bench.runs.plan import Condition
from bench.runs.request import Request, engine_options
from bench.runs.run import Summary
from bench.runs.run_spec import RunSpec
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
DryRun = Annotated[bool, switch("print the jobs and how they stand, and run nothing", group=HOW)]
Executor = Annotated[
    Executing,
    switch("where jobs run: on this machine (local), a SLURM cluster or a Ray cluster", group=HOW, show_default=True),
]
Engine = Annotated[
    tuple[str, ...],
    switch("for SLURM or Ray, as partition=gpu, time=24:00:00, alone.constraint=epyc (repeatable; or engine: in the "
           "configuration)", name="--engine", metavar="NAME=VALUE", group=HOW),
]  # fmt: skip
SecretFile = Annotated[
    Path | None,
    switch("the run secret: 32 bytes or 64 hex digits (default: RESULTS's own)", metavar="FILE", group=WHERE),
]
NoSite = Annotated[bool, switch("write records only", group=WHERE)]


def run(
    *,
    chosen: Annotated[RunFlags | None, SPREAD] = None,
    suite: Suite = None,
    config: Config = None,
    dry_run: DryRun = False,
    executor: Executor = "local",
    engine: Engine = (),
    results: ResultsFolder = RESULTS,
    data_root: DataRoots = (),
    secret: SecretFile = None,
    sign: Sign = None,
    site: Site = None,
    no_site: NoSite = False,
) -> int:
    """Run what is missing; 1 if anything failed."""
    place = api.open_place(results, data_root)

    def show(spec: RunSpec, summary: Summary) -> None:
        print_board(api.board(summary, place))

    request = Request((chosen.values() if chosen else {}), suite, config, local=executor == "local")
    return _perform(
        request, place, show, dry_run=dry_run, executor=executor, engine=engine, secret=secret,
        sign=sign, site=None if no_site else site or place.results.root / "site",
    )  # fmt: skip


def audit(
    *,
    chosen: Annotated[AuditFlags | None, SPREAD] = None,
    suite: Suite = None,
    config: Config = None,
    confidence: Annotated[
        float, read(Share, "of the bounds in the table; records keep 0.95", metavar="C", show_default=True, group=HOW)
    ] = 0.95,
    dry_run: DryRun = False,
    executor: Executor = "local",
    engine: Engine = (),
    results: ResultsFolder = RESULTS,
    data_root: DataRoots = (),
    secret: SecretFile = None,
    sign: Sign = None,
    site: Site = None,
    no_site: NoSite = False,
) -> int:
    """Audit what is not audited yet; 1 if anything failed, a claim is violated, or noise is not as stated."""
    options = chosen.values() if chosen else {}
    if options.get("public") == NO_PUBLIC:
        raise UsageError("an audit makes its inputs of public rows: leave --public none out, or name a public set")
    place, violated = api.open_place(results, data_root), False

    def show(spec: RunSpec, summary: Summary) -> None:
        nonlocal violated
        for audited in api.audits(spec, place, confidence):
            to_stdout().print(_table(audited, confidence))
            violated |= any(row.violated for row in audited.rows)

    only = {"metrics": [api.AUDIT_METRIC], "attacks": "none", "controls": False}
    code = _perform(
        Request(options | only, suite, config, "audit", local=executor == "local"), place, show, dry_run=dry_run,
        executor=executor, engine=engine, secret=secret,
        sign=sign, site=None if no_site else site or place.results.root / "site",
    )  # fmt: skip
    return code or int(violated)


def _perform(
    request: Request, place: Place, show: Callable[[RunSpec, Summary], None], *, dry_run: bool, executor: Executing,
    engine: Sequence[str], secret: Path | None, sign: Path | None, site: Path | None,
) -> int:  # fmt: skip
    """Run, `show` each part, and print what it came to; a dry run prints the plan alone."""
    signer = _checked(request, executor, engine, secret, sign)
    if dry_run:
        return _print_plan(api.plan(request, place))
    observer = api.Observer(Display(figures=interim), _print_absent, show)
    result = api.run(
        request, place, observer, signer=signer, secret=secret, site=site, executor=executor, engine=engine
    )
    if result.unsigned:
        print(f"{result.unsigned} are not signed by this key and stay; --overwrite always computes them again")
    if result.page is not None:
        print(f"Page:    {result.page.as_uri()}")
    return _conclude(result, place)


def _checked(
    request: Request,
    executor: Executing,
    engine: Sequence[str],
    secret: Path | None,
    sign: Path | None,
) -> SigningKey | None:
    """The key to sign with. Raises UsageError for what a run would refuse, so that a dry run refuses it, too."""
    from bench.results.run_secret import given

    if executor == "local" and engine:
        raise UsageError("--engine goes with --executor slurm or ray, which is not given")
    if executor != "local":
        engine_options(engine, request.config)
    if secret is not None:
        given(secret)
    return SigningKey.read(sign) if sign else None


def _print_absent(name: str, reason: str) -> None:
    print(f"left out {name}. {reason}", file=sys.stderr)


def _print_plan(plan: api.Plan) -> int:
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
    lines = [(f"{api.part_title(part, plan.specs)}: ", [job.runs for job in plan.jobs if job.part == part])
             for part in parts if len(plan.specs) > 1]  # fmt: skip
    for title, runs in (*lines, ("", [job.runs for job in plan.jobs])):
        end = "" if title else "; nothing was run"
        print(f"{title}{sum(runs)} to run, {len(runs) - sum(runs)} to keep{end}")
    return 0


def _conclude(result: api.RunResult, place: Place) -> int:
    summary = result.summary
    failures = summary.failures
    if summary.records:
        existing = len(summary.records) - summary.computed
        print(f"Records: {place.results.root / 'cells'}")
        print(f"{summary.computed} computed, {existing} already there, {len(failures)} failed; {result.seconds:.0f} s")
    for condition, text in KEPT.items():
        if summary.kept[condition]:
            print(f"{summary.kept[condition]} {text}")
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
    where = f" (log: {log})" if log.exists() else ""
    return f"{record.status}: {record.cell}/{record.evaluator} in {record.phase}: {record.reason}{where}"


def _table(audited: api.Audited, confidence: float) -> Table:
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
