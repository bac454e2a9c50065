"""Re-identification against the number of released rows: a table of figures, seconds and memory, and a plot.

    python tests/campaigns/size_curves.py synth-cxr[images=36000] --rows 600 --rows 2000 --rows 10000
        [--method NAME ...] [--attack NAME ...] [--effort first-look] [--keys 3] [--size 32] [--threads 1]
        [--folder FOLDER] [--plot curves.png]

Attacks and methods have the parameters of the preset `--effort` at every size, so that the number of rows is all that
changes. Each row of the table is of a fresh process without a sandbox: guesswork (median over keys), top-1 and ReID AUC
with 95 % intervals, the way in which the attack matched, seconds of training and of scoring, and the largest memory of
the process, data included. A row is printed, and kept in `rows.jsonl` of the folder, as soon as it is known. The plot
shows all rows of that file; without `--rows` nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch

from bench.contract.preset import PRESETS, Preset
from bench.evaluators.reidentification import Reidentification
from bench.plugins.configured import configure
from bench.plugins.spec import UsageError
from bench.results.results import Results
from bench.runs.judge import judge
from bench.types import Metric, NotApplicable
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
FIGURES = ("value", "low", "high", "null", "null_low", "null_high")


Row: TypeAlias = "dict[str, Any]"


def written(figure: Mapping[str, float | None]) -> str:
    """A figure with its interval."""
    interval = "" if figure["low"] is None else f" ({figure['low']:.4g} to {figure['high']:.4g})"
    return f"{figure['value']:.4g}{interval}"


def line(row: Row) -> str:
    """A line of the table."""
    if "reason" in row:
        return f"{row['method']} | {row['attack']} | does not apply: {row['reason']}"
    figures = " | ".join(written(figure) for figure in row["figures"].values())
    return (
        f"{row['method']} | {row['attack']} | {row['rows']} | {figures} | "
        f"{row['attack seconds']:.0f} + {row['score seconds']:.0f} s | {row['gigabytes']:.1f} GB | {row['way']}"
    )


def measured(options: argparse.Namespace, rows: int, method: str, attack: str) -> Row:
    """Figures by their metric, and costs; or the reason why there are none."""
    torch.set_num_threads(options.threads)
    every = replace(PRESETS[options.effort], private=None, keys=options.keys)
    cast("dict[str, Preset]", PRESETS)["all rows"] = every
    chosen = {name: getattr(options, name) for name in ("dataset", "size", "seed")}
    choice = Choice.read({**chosen, "preset": "all rows", "limit": rows})
    place = Place(Results(options.folder), options.folder / "cache", tuple(options.data_root))
    row: Row = {"method": method, "attack": attack}
    try:
        bench = Workbench.open(Cell(configure("methods", method, options.effort), choice, "cpu"), place)
        found = Reidentification(configure("attacks", attack, options.effort).plugin).measure(bench)
    except (NotApplicable, UsageError) as reason:
        return {**row, "reason": str(reason)}
    scores = [judge(cast("Metric[object]", metric), found.evidence) for metric in METRICS]
    return {
        **row,
        "rows": len(bench.private),
        "figures": {
            metric.name: {name: getattr(score, name) for name in FIGURES}
            for metric, score in zip(METRICS, scores, strict=True)
        },
        "attack seconds": found.seconds["attack"],
        "score seconds": found.seconds["score"],
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "way": "; ".join(f"{name} {found.details[name]}" for name in NOTES if name in found.details),
    }


def plot(rows: Sequence[Row], target: Path) -> None:
    """A panel for each attack and figure, a curve for each method."""
    import matplotlib.pyplot as plt
    import seaborn as sns

    rows = sorted((row for row in rows if "figures" in row), key=lambda row: row["rows"])
    attacks, methods = (list(dict.fromkeys(row[name] for row in rows)) for name in ("attack", "method"))
    sns.set_theme(style="whitegrid", palette="colorblind")
    colours = dict(zip(methods, sns.color_palette("colorblind", len(methods)), strict=True))
    sizes = sorted({row["rows"] for row in rows})
    figure, panels = plt.subplots(
        len(attacks), len(METRICS), figsize=(12, 3.2 * len(attacks)), sharex=True, squeeze=False, layout="constrained"
    )
    for attack, across in zip(attacks, panels, strict=True):
        for metric, axes in zip(METRICS, across, strict=True):
            chance = {row["rows"]: row["figures"][metric.name] for row in rows if row["attack"] == attack}
            axes.fill_between(
                list(chance), *([each[name] for each in chance.values()] for name in ("null_low", "null_high")),
                color="lightgrey", label="chance, 95 %",
            )  # fmt: skip
            for place, method in enumerate(methods):
                own = {row["rows"]: row["figures"][metric.name] for row in rows
                       if (row["attack"], row["method"]) == (attack, method)}  # fmt: skip
                value = [each["value"] for each in own.values()]
                spread = None  # of guesswork, a median over keys, there is none
                if all(each["low"] is not None for each in own.values()):
                    spread = [[each["value"] - each["low"] for each in own.values()],
                              [each["high"] - each["value"] for each in own.values()]]  # fmt: skip
                axes.errorbar(list(own), value, yerr=spread, marker="os^Dv"[place % 5], color=colours[method],
                              label=method, capsize=3)  # fmt: skip
            axes.set(xscale="log", xlabel="released rows", ylabel=metric.name, title=attack)
            axes.set_xticks(sizes, [f"{n:,}" for n in sizes], rotation=35)
            axes.minorticks_off()
            if metric.name != "reid-auc":
                axes.set_yscale("log")
    panels[0][-1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.savefig(target, dpi=110)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--rows", type=int, action="append", default=[])
    parser.add_argument("--method", action="append", help=f"default: {', '.join(METHODS)}")
    parser.add_argument("--attack", action="append", help=f"default: {', '.join(ATTACKS)}")
    parser.add_argument("--effort", default="first-look", help="preset of the parameters of methods and attacks")
    parser.add_argument("--keys", type=int, default=3)
    parser.add_argument("--size", type=int, help="side of images in pixels; default: the data set's")
    parser.add_argument("--threads", type=int, default=1, help="threads of each process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-root", type=Path, action="append", default=[])
    parser.add_argument("--folder", type=Path, default=Path("results/size-curves"))
    parser.add_argument("--plot", type=Path, help="a PNG or SVG file")
    options = parser.parse_args()
    kept = options.folder / "rows.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    print("method | attack | rows | guesswork | top-1 | ReID AUC | seconds | memory | way", flush=True)
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        for rows in options.rows:
            for method in options.method or METHODS:
                for attack in options.attack or ATTACKS:
                    found = pool.submit(measured, options, rows, method, attack).result()
                    print(line(found), flush=True)
                    with kept.open("a") as file:
                        file.write(json.dumps(found) + "\n")
    if options.plot is not None:
        plot([json.loads(text) for text in kept.read_text().splitlines()], options.plot)


if __name__ == "__main__":
    main()
