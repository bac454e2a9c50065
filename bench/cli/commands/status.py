"""`bench status`: how every job of a results folder stands, or what its jobs cost at another size."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from rich.table import Table

from bench import api
from bench.cli.parameters import RESULTS, ResultsFolder, goes_with, read, switch
from bench.cli.terminal import to_stdout
from bench.plugins.option import Amount, Count
from bench.results.results import Results

COST = goes_with("--cost")


def status(
    *,
    results: ResultsFolder = RESULTS,
    files: Annotated[bool, switch("also run Python files that plans name; not in a folder of others")] = False,
    cost: Annotated[
        bool, switch("estimate hours at another size from recorded seconds", group=("Parameters", COST))
    ] = False,
    rows: Annotated[
        int,
        read(
            Count,
            "with --cost: private rows of each data set",
            metavar="N",
            show_default=True,
            group=("Parameters", COST),
        ),
    ] = 50_000,
    workers: Annotated[
        int,
        read(
            Count,
            "with --cost: workers that share the jobs",
            metavar="N",
            show_default=True,
            group=("Parameters", COST),
        ),
    ] = 1,
    price: Annotated[
        float | None, read(Amount, "with --cost: price of a worker's hour", metavar="P", group=("Parameters", COST))
    ] = None,
) -> int:
    """Print a line a job; 1 if any is not done."""
    folder = api.open_place(results).results
    if cost:
        return _print_costs(folder, rows=rows, workers=workers, price=price)
    table = Table("data set", "cell", "evaluator", "state", "why")
    counts: Counter[str] = Counter()
    for job in api.status(folder, files=files):
        counts[job.state] += 1
        table.add_row(job.dataset, job.cell, job.evaluator, job.state, job.reason)
    to_stdout().print(table)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    return 0 if set(counts) <= {"done"} else 1


def _print_costs(results: Results, *, rows: int, workers: int, price: float | None) -> int:
    from bench.runs.cost import hours_on

    found = api.costs(results, rows)
    table = Table(
        "evaluator", "device", "jobs", "rows", "seconds a job", "grows as rows to the", f"hours at {rows:,} rows"
    )
    for one in found:
        growth = f"{one.growth:.2f}" if one.fitted else "1 (one size only)"
        table.add_row(
            one.kind, one.device, str(one.jobs), f"{one.rows:,}", f"{one.seconds:.1f}", growth, f"{one.hours:.1f}"
        )
    to_stdout().print(table)
    hours = sum(one.hours for one in found)
    print(f"{hours:.1f} hours of a worker; {hours_on(found, workers):.1f} hours on {workers} workers at best")
    if price is not None:
        print(f"{hours * price:,.0f} at {price:g} an hour")
    return 0
