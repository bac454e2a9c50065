"""The study of Syfer's family as a table and a plot: utility beside guesswork, a line a setting.

    for seed in 0 1 2; do bench run --suite syfer-study --seed $seed --results study; done
    python tests/benchmarks/syfer_study.py study --plot study.png

Means over seeds with the lowest and highest in brackets. Settings that were not measured under all seeds say how many
they have; those without a figure give the reason.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import matplotlib.pyplot as plt
import seaborn as sns
from study_columns import Columns, scores

from bench.results.records import Record
from bench.results.results import Results

COLUMNS: Columns = {
    "utility": ("utility-auc", None),
    "guesses, relational": ("guesswork", "relational"),
    "guesses, nearest neighbour": ("guesswork", "nearest-neighbour"),
    "ReID AUC, relational": ("reid-auc", "relational"),
}


def figures(folder: Path) -> tuple[dict[str, dict[str, list[float]]], dict[str, str]]:
    """By setting and column, a figure a seed; and by setting why it has none."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    reasons: dict[str, str] = {}
    for _, record in Results(folder).records():
        if not isinstance(record, Record) or not record.method.name.startswith("syfer"):
            continue
        setting = record.method.written
        if record.reason is not None:
            reasons[setting] = record.reason
        for title, score in scores(record, COLUMNS):
            found[setting][title].append(score.value)
    return found, reasons


def cell(values: Sequence[float]) -> str:
    """Mean, lowest and highest."""
    if not values:
        return "-"
    return f"{fmean(values):.3g} ({min(values):.3g} to {max(values):.3g}; {len(values)})"


def plot(found: Mapping[str, Mapping[str, Sequence[float]]], target: Path) -> None:
    """Guesses over utility, a point a setting, seed and attack."""
    points = [
        (setting, utility, guesses, title.removeprefix("guesses, "))
        for setting, by in found.items()
        for title in COLUMNS
        if title.startswith("guesses")
        for utility, guesses in zip(by["utility"], by[title], strict=False)
    ]
    sns.set_theme(style="whitegrid")
    _, axes = plt.subplots(figsize=(11, 5), layout="constrained")
    names, utilities, guesses, attacks = zip(*points, strict=True)
    sns.scatterplot(x=utilities, y=guesses, hue=names, style=attacks, ax=axes, s=60)
    axes.set(xlabel="Utility AUC", ylabel="Guesses", yscale="log")
    sns.move_legend(axes, "center left", bbox_to_anchor=(1, 0.5), frameon=False)
    plt.savefig(target, dpi=150)


def main() -> None:
    """Print the table and draw the plot."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("results", type=Path)
    asked.add_argument("--plot", type=Path, help="a PNG or SVG file")
    options = asked.parse_args()
    found, reasons = figures(options.results)
    print("| setting |", " | ".join(COLUMNS), "|")
    print("|---" * (1 + len(COLUMNS)) + "|")
    for setting in sorted(found.keys() | reasons.keys()):
        cells = [cell(found[setting][title]) for title in COLUMNS]
        print(f"| {setting} |", " | ".join(cells), "|", reasons.get(setting, "") if set(cells) == {"-"} else "")
    if options.plot is not None:
        plot(found, options.plot)


if __name__ == "__main__":
    main()
