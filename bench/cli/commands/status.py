"""`bench status` and `bench clean`: jobs and regenerable files of a folder."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich.filesize import decimal
from rich.table import Table

from bench.api import boards, running
from bench.cli.parameters import RESULTS, SPREAD, Format, ResultsFolder, goes_with, read, switch
from bench.cli.terminal import print_json, to_stdout, waiting
from bench.plugins.spec import Amount, Count, UsageError
from bench.results.results import Results
from bench.wire.text import shown

COST = goes_with("--cost", show=True)


@dataclass(frozen=True, kw_only=True)
class CostOptions:
    """Options of an estimate of hours."""

    cost: Annotated[bool, switch("estimate hours at another size from recorded seconds", group=COST)] = False
    rows: Annotated[
        int, read(Count, "number of private rows of each data set", metavar="N", show_default=True, group=COST)
    ] = 50_000
    workers: Annotated[
        int, read(Count, "number of workers that share the jobs", metavar="N", show_default=True, group=COST)
    ] = 1
    price: Annotated[float | None, read(Amount, "price of a worker's hour", metavar="P", group=COST)] = None


USUAL = CostOptions()


def status(
    *,
    results: ResultsFolder = RESULTS,
    files: Annotated[
        bool, switch("also run Python files that plans name; do not use it in other people's folders")
    ] = False,
    form: Format = "text",
    estimate: Annotated[CostOptions, SPREAD] = USUAL,
) -> int:
    """Print a line a job; 1 if any is not done."""
    from bench.runs.plan import FROM_A_FILE

    folder = running.open_place(results).results
    if estimate.cost:
        if form == "json":
            raise UsageError("--cost prints a table only: leave --format out")
        return _print_costs(folder, estimate)
    with waiting("compare the records with what a run would measure"):
        jobs = list(running.status(folder, files=files))
    if form == "json":
        states = Counter(job.state for job in jobs)
        print_json(jobs=[asdict(job) for job in jobs], counts=dict(states))
        return 0 if set(states) <= {"done"} else 1
    table = Table("data set", "cell", "evaluator", "state", "why")
    counts: Counter[str] = Counter()
    for job in jobs:
        counts[job.state] += 1
        table.add_row(job.dataset, job.cell, job.evaluator, job.state, job.reason)
    to_stdout().print(table)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    if taken := {(job.dataset, job.cell) for job in jobs if job.taken}:
        cells = len({(job.dataset, job.cell) for job in jobs})
        print(f"A command works on {len(taken)} of {cells} cells now; it takes up what is not done")
    if not files and any(job.reason == FROM_A_FILE for job in jobs):
        again = shlex.join(["bench", "status", "--results", str(results), "--files"])
        print(f"Next, if this folder is your own: {again}", file=sys.stderr)
    return 0 if set(counts) <= {"done"} else 1


def _print_costs(results: Results, options: CostOptions) -> int:
    from bench.runs.cost import hours_on

    costs = running.costs(results, options.rows)
    heading = f"hours at {options.rows:,} rows"
    table = Table("evaluator", "device", "jobs", "rows", "seconds a job", "grows as rows to the", heading)
    for cost in costs:
        growth = f"{cost.growth:.2f}" if cost.fitted else "1 (one size only)"
        table.add_row(
            cost.kind, cost.device, str(cost.jobs), f"{cost.rows:,}", f"{cost.seconds:.1f}", growth, f"{cost.hours:.1f}"
        )
    to_stdout().print(table)
    hours, shared = sum(cost.hours for cost in costs), hours_on(costs, options.workers)
    print(f"{hours:.1f} hours of a worker; {shared:.1f} hours on {options.workers} workers at best")
    if options.price is not None:
        print(f"{hours * options.price:,.0f} at {options.price:g} an hour")
    return 0


def clean(
    *,
    results: ResultsFolder = RESULTS,
    only: Annotated[
        Literal["artefacts", "cache"] | None,
        switch("only artefacts of the results folder, or only the cache of prepared data and features (default: both)"),
    ] = None,
    yes: Annotated[bool, switch("remove them; without it, nothing is removed")] = False,
) -> int:
    """List, and with --yes remove; 1 if something is in use."""
    items = boards.clean(running.open_place(results), only)
    sizes, counts = Counter[Path](), Counter[Path]()
    for item in items:
        sizes[item.path.parent] += item.size
        counts[item.path.parent] += 1
    for folder, size in sizes.items():
        print(f"{decimal(size):>10}  {counts[folder]} in {shown(folder)}")
    total = sum(sizes.values())
    if not yes:
        print(f"{decimal(total)} can be made again; nothing was removed: --yes removes it")
        return 0
    busy = [item for item in items if not item.remove()]
    for item in busy:
        print(f"in use, and kept: {shown(item.path)}", file=sys.stderr)
    print(f"{decimal(total - sum(item.size for item in busy))} removed")
    return 1 if busy else 0
