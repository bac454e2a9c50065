"""Bob beside simple models on the same released rows, chosen on the same dev rows: a table for real data.

    BENCH_DATA=/data python tests/benchmarks/bob_against_simple_models.py kermany-cxr nih synth-cxr

A row a method and data set: mean test AUC over the preset's keys, Bob's with either choice, his lead over the best
simple model with a bootstrap over test people (of the mean over keys), and his CPU seconds. Schemes and prepared data
are kept in `--folder`, so that a run goes on where another stopped.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from bench.bob.model_selection import mean_auc
from bench.conformance.bob_strength import best_simple_model, lead
from bench.evaluators.predictions import check_labels, learn, plan_of, queried
from bench.evaluators.utility import HELD_OUT
from bench.plugins import registry
from bench.plugins.configured import configure
from bench.results.results import Results
from bench.types import NotApplicable
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench


def row(bench: Workbench) -> str:
    """Bob and the best simple model under every key, as a line of the table."""
    check_labels(bench)
    scheme, shortlist, seconds = bench.scheme(), None, 0.0
    bobs, simples, outsiders, chosen = list[Tensor](), list[Tensor](), list[float](), list[str]()
    truth, dev_labels = cast(Tensor, bench.test.labels).cpu(), cast(Tensor, bench.control.labels).cpu()
    plan = replace(plan_of(bench.preset), hold_out=HELD_OUT)
    for number in range(bench.preset.utility_keys):
        key, release = bench.key(scheme, number), bench.sealed(scheme, number).release
        start = time.process_time()
        learned = learn(bench, release, key, plan, bench.seed("bob", number), shortlist)
        seconds += time.process_time() - start
        shortlist = None if bench.preset.bob_patient else learned.bob.shortlist
        dev, test = (queried(bench, key, part) for part in (bench.control, bench.test))
        simple = best_simple_model(release, dev, dev_labels, test, decode=key.decode)
        bobs.append(learned.scores)
        simples.append(simple.scores)
        chosen.append(f"{learned.bob.model.choice.recipe.architecture} {learned.bob.model.choice.recipe.view}")
        outsiders += [] if learned.outsider is None else [mean_auc(learned.outsider, truth)]
    own, other = ([mean_auc(made, truth) for made in each] for each in (bobs, simples))
    people = None if bench.test.subjects is None else bench.test.subjects.cpu()
    found = lead(simples, bobs, truth, people)
    figures = " ".join(f"{value:.3f}" for value in own)
    outside = f"{sum(outsiders) / len(outsiders):.3f}" if outsiders else "-"
    return (
        f"{_mean(own):.3f}  {_mean(other):.3f}  {-found.difference:+.3f} (to {-found.low:+.3f})"
        f"  {'TOO WEAK' if found.too_weak else 'ok':8}  {outside}  {seconds:5.1f} s  {chosen[0]} | by key {figures}"
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _cells(options: argparse.Namespace) -> Iterator[Cell]:
    for data in options.data:
        choice = Choice.read({"dataset": data, "preset": options.preset, "seed": options.seed})
        for name in options.method or registry.entries("methods"):
            yield Cell(configure("methods", name, options.preset), choice, "cpu")


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--method", action="append", help="default: all")
    parser.add_argument("--preset", default="first-look")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("results/bob-against-simple-models"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    roots = tuple(Path(root) for root in os.environ.get("BENCH_DATA", "").split(os.pathsep) if root)
    place = Place(Results(options.folder), options.folder / "cache", roots)
    print("data method | Bob  simple  lead (97.5 % bound)  verdict  outsider  CPU  chosen", flush=True)
    for cell in _cells(options):
        bench = Workbench.open(cell, place)
        try:
            line = row(bench)
        except NotApplicable as reason:
            line = f"not applicable: {reason}"
        print(f"{cell.choice.dataset} {cell.method} | {line}", flush=True)


if __name__ == "__main__":
    main()
