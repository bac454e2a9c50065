"""`bench status`: what is done, missing, failed or out of date among the cells of a results folder, and why."""

from __future__ import annotations

import argparse
from collections import Counter

from rich.table import Table

from bench.cli.options import place
from bench.cli.terminal import to_stdout
from bench.plugins.spec import UsageError
from bench.results.records import DatasetRecord, RecordError
from bench.results.results import Results
from bench.runs.plan import data_key, read_plan, standing
from bench.workbench.cell import Cell, Planned


def main(options: argparse.Namespace) -> int:
    """Print a line an evaluator; 1 if anything is not done."""
    results = place(options).results
    planned = list(results.plans())
    if not planned:
        raise UsageError(f"no cells in {results.root}: run something first, or name the folder with --results")
    table = Table("data set", "cell", "evaluator", "state", "why")
    counts: Counter[str] = Counter()
    for folder in planned:
        dataset, _, cell = folder.partition("/")
        for evaluator, state, reason in _lines(folder, results):
            counts[state] += 1
            table.add_row(dataset, cell, evaluator, state, reason)
    to_stdout().print(table)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    return 0 if set(counts) <= {"done"} else 1


def _lines(folder: str, results: Results) -> list[tuple[str, str, str]]:
    try:
        cell, planned = read_plan(results.plan(folder) or "")
        data = results.data(data_key(cell.choice))
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
