"""Convergence of learned attacks on every contender: a table of steps, ends, areas and seconds.

`python tests/campaigns/convergence.py synth-cxr [--limit 200] [--preset first-look] [--keys N] [--data-root FOLDER]`
attacks each method that is no control with each attack that has a learning curve, in this process, without a sandbox.
A row is printed as soon as it is known: steps and end of each training, its part if it has several, the ReID AUC over
the keys with its p, and the seconds of the trainings. `--method` and `--attack` name others (repeatable); stored
schemes let a run go on where another stopped.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import torch

from bench.evaluators.reidentification import Reidentification
from bench.plugins import registry
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.results.results import Results
from bench.runs.judge import judge
from bench.types import Metric, NotApplicable, curves_of
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench
from metrics.pair_roc import ReidAUC

LEARNED = ("relational", "surrogate", "moments", "contrastive", "contrastive-labels")


def row(bench: Workbench, name: str) -> tuple[str, bool | None]:
    """A line of the table, and whether all trainings converged; None if the attack does not apply."""
    attack = configure("attacks", name, bench.cell.choice.preset).plugin
    try:
        measured = Reidentification(attack).measure(bench)
    except (NotApplicable, UsageError) as reason:
        return f"does not apply: {reason}", None
    curves = curves_of(measured.details) or ()
    area = judge(cast("Metric[object]", ReidAUC()), measured.evidence)
    p = "" if area.p is None else f" (p {area.p:.3g})"
    ends = "; ".join(
        f"{curve.part + ': ' if curve.part else ''}{curve.points[-1][0]} {curve.reason.split(':')[0]}"
        for curve in curves
    )
    converged = all(curve.converged for curve in curves)
    word = "yes" if converged else "NO"
    return f"{word:3} | {area.value:.3f}{p} | {measured.seconds['attack']:.0f} s | {ends}", converged


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """The contenders' cells."""
    choice = Choice.read(
        {name: getattr(options, name) for name in ("dataset", "preset", "keys", "limit")} | {"seed": options.seed}
    )
    for name in options.method or registry.entries("methods"):
        method = configure("methods", name, options.preset)
        if options.method or method.plugin.role is None:
            yield Cell(method, choice, "cpu")


def main() -> None:
    """Print the table, a row as soon as it is known, then the shares by attack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--method", action="append", help="default: all that are no controls")
    parser.add_argument("--attack", action="append", help=f"default: {', '.join(LEARNED)}")
    parser.add_argument("--preset", default="first-look")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--keys", type=int, help="default: the preset's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-root", type=Path, action="append", default=[])
    parser.add_argument("--folder", type=Path, default=Path("results/convergence"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    place = Place(Results(options.folder), options.folder / "cache", tuple(options.data_root))
    print("method | attack | converged | ReID AUC | attack's seconds | steps and end of each training", flush=True)
    known: Counter[tuple[str, bool]] = Counter()
    for cell in cells(options):
        try:
            bench = Workbench.open(cell, place)
        except NotApplicable as reason:
            print(f"{cell.method} | does not apply: {reason}", flush=True)
            continue
        try:
            for name in options.attack or LEARNED:
                line, converged = row(bench, name)
                print(f"{cell.method} | {name} | {line}", flush=True)
                if converged is not None:
                    known[name, converged] += 1
        finally:
            bench.close()
    for name in options.attack or LEARNED:
        print(f"{name}: {known[name, True]} of {known[name, True] + known[name, False]} converged")


if __name__ == "__main__":
    main()
