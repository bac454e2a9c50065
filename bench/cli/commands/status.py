"""`bench status`: what is done, missing, failed or out of date among the cells of a results folder, and why."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import yaml
from rich.table import Table

from bench.cli.options import place
from bench.plugins.spec import UsageError
from bench.runs.display import to_stdout
from bench.runs.plan import read_plan, recall_data, standing
from bench.workbench.cell import Place


def main(options: argparse.Namespace) -> int:
    """Print a line an evaluator; 1 if anything is not done."""
    where = place(options)
    plans = sorted(where.results.glob("artefacts/plans/*/*.yaml"))
    if not plans:
        raise UsageError(f"no cells in {where.results}: run something first, or name the folder with --results")
    table = Table("data set", "cell", "evaluator", "state", "why")
    counts: Counter[str] = Counter()
    for path in plans:
        for evaluator, state, reason in _lines(path, where):
            counts[state] += 1
            table.add_row(path.parent.name, path.stem, evaluator, state, reason)
    to_stdout().print(table)
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    return 0 if set(counts) <= {"done"} else 1


def _lines(path: Path, where: Place) -> list[tuple[str, str, str]]:
    try:
        cell, planned = read_plan(path)
        data = recall_data(where, cell.data)
        found = [(evaluator.name, standing(where, cell, evaluator, data)) for evaluator in planned]
    except (UsageError, yaml.YAMLError, KeyError, TypeError) as error:
        return [("all", "unknown", f"the plan cannot be read any more: {error}")]
    return [(name, each.state, each.reason) for name, each in found]
