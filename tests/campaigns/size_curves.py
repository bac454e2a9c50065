"""Re-identification against the number of released rows: a table of figures, seconds and memory.

    python tests/campaigns/size_curves.py synth-cxr[images=36000] --rows 600 --rows 2000 --rows 10000
        [--method NAME ...] [--attack NAME ...] [--effort first-look] [--keys 3] [--size 32] [--threads 1]
        [--folder FOLDER]

Attacks and methods have the parameters of the preset `--effort` at every size, so that the number of rows is all that
changes. Each row of the table is of a fresh process without a sandbox: guesswork (median over keys), top-1 and ReID AUC
with 95 % intervals, the way in which the attack matched, seconds of training and of scoring, and the largest memory of
the process, data included. A row is printed as soon as it is known.
"""

from __future__ import annotations

import argparse
import resource
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import cast

import torch

from bench.contract.preset import PRESETS, Preset
from bench.evaluators.reidentification import Reidentification
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.results.results import Results
from bench.runs.judge import judge
from bench.types import Metric, NotApplicable, Score
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench
from metrics.guesswork import Guesswork
from metrics.pair_roc import ReidAUC
from metrics.ranks import Top1

METHODS = ("dauntless", "syfer-random", "neuracrypt", "dp-simple")
ATTACKS = ("relational", "leverage", "verification")
METRICS = (Guesswork(), Top1(), ReidAUC())
NOTES = ("matching", "reading", "layout")


def written(score: Score) -> str:
    """A figure with its interval."""
    interval = "" if score.low is None or score.high is None else f" ({score.low:.4g} to {score.high:.4g})"
    return f"{score.value:.4g}{interval}"


def row(options: argparse.Namespace, rows: int, method: str, attack: str) -> str:
    """A line of the table."""
    torch.set_num_threads(options.threads)
    every = replace(PRESETS[options.effort], private=None, keys=options.keys)
    cast("dict[str, Preset]", PRESETS)["all rows"] = every
    chosen = {name: getattr(options, name) for name in ("dataset", "size", "seed")}
    choice = Choice.read({**chosen, "preset": "all rows", "limit": rows})
    place = Place(Results(options.folder), options.folder / "cache", tuple(options.data_root))
    try:
        bench = Workbench.open(Cell(configure("methods", method, options.effort), choice, "cpu"), place)
        measured = Reidentification(configure("attacks", attack, options.effort).plugin).measure(bench)
    except (NotApplicable, UsageError) as reason:
        return f"does not apply: {reason}"
    figures = " | ".join(
        written(judge(cast("Metric[object]", metric), measured.evidence)) for metric in METRICS
    )  # fmt: skip
    told = "; ".join(f"{name} {measured.details[name]}" for name in NOTES if name in measured.details)
    seconds = f"{measured.seconds['attack']:.0f} + {measured.seconds['score']:.0f} s"
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return f"{len(bench.private)} | {figures} | {seconds} | {gigabytes:.1f} GB | {told}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--rows", type=int, action="append", required=True)
    parser.add_argument("--method", action="append", help=f"default: {', '.join(METHODS)}")
    parser.add_argument("--attack", action="append", help=f"default: {', '.join(ATTACKS)}")
    parser.add_argument("--effort", default="first-look", help="preset of the parameters of methods and attacks")
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--size", type=int, help="side of images in pixels; default: the data set's")
    parser.add_argument("--threads", type=int, default=1, help="threads of each process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-root", type=Path, action="append", default=[])
    parser.add_argument("--folder", type=Path, default=Path("results/size-curves"))
    options = parser.parse_args()
    print("method | attack | rows | guesswork | top-1 | ReID AUC | seconds | memory | way", flush=True)
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for rows in options.rows:
            for method in options.method or METHODS:
                for attack in options.attack or ATTACKS:
                    found = pool.submit(row, options, rows, method, attack).result()
                    print(f"{method} | {attack} | {found}", flush=True)


if __name__ == "__main__":
    main()
