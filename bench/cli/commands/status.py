"""`bench status`: what is done, missing, failed or out of date among the cells of a results folder, and why."""

from __future__ import annotations

import argparse
import time
from collections import Counter

from rich.table import Table

from bench.cli.cost_table import print_costs
from bench.cli.options import place
from bench.cli.queue_table import State, at_work, counts, tallies
from bench.cli.terminal import to_stdout
from bench.plugins.spec import UsageError
from bench.results.records import DatasetRecord, RecordError
from bench.results.results import Results
from bench.runs.plan import data_key, read_plan, standing
from bench.workbench.cell import Cell, Planned

WATCH_SECONDS = 5.0


def main(options: argparse.Namespace) -> int:
    """Print a line an evaluator; 1 if anything is not done."""
    results = place(options).results
    if options.watch:
        return _watch(results, once=options.once)
    if options.cost:
        return print_costs(results, rows=options.rows, workers=options.workers, price=options.price)
    planned = list(results.journal.plans())
    if not planned:
        raise UsageError(f"no cells in {results.root}: run something first, or name the folder with --results")
    table = Table("data set", "cell", "evaluator", "state", "why")
    counts: Counter[str] = Counter()
    for folder in planned:
        dataset, _, cell = folder.partition("/")
        for evaluator, state, reason in _lines(folder, results, files=options.files):
            counts[state] += 1
            table.add_row(dataset, cell, evaluator, state, reason)
    to_stdout().print(table)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    return 0 if set(counts) <= {"done"} else 1


def _watch(results: Results, *, once: bool) -> int:
    """Print how jobs stand until all have ended; 1 where a job failed, or is left."""
    console, known = to_stdout(), dict[str, State]()
    while True:
        found = counts(results.queue, known)
        if not found:
            raise UsageError(f"no planned run in {results.root}: bench run --executor none writes one")
        console.print(tallies(found))
        if any(each.running for each in found):
            console.print(at_work(found))
        over = not any(each.states[state] for each in found for state in ("waiting", "running", "lost"))
        if once or over:
            return 0 if all(each.states.keys() <= {"done"} for each in found) else 1
        time.sleep(WATCH_SECONDS)


def _lines(folder: str, results: Results, *, files: bool) -> list[tuple[str, str, str]]:
    try:
        cell, planned = read_plan(results.journal.plan(folder) or "", files=files)
        data = results.journal.data(data_key(cell.choice))
        found = [
            (name, "unknown", str(each)) if isinstance(each, UsageError) else _line(results, cell, each, data)
            for name, each in planned.items()
        ]
    except (UsageError, RecordError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [("all", "unknown", f"the plan cannot be read any more: {error}")]
    return found


def _line(results: Results, cell: Cell, planned: Planned, data: DatasetRecord | None) -> tuple[str, str, str]:
    found = standing(results, cell, planned, data)
    return planned.name, found.state, found.reason
