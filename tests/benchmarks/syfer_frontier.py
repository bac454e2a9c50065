"""The frontier of Syfer's trainings: what Bob keeps against what attacks find.

    python tests/benchmarks/syfer_frontier.py docs/pictures/syfer-frontier.csv docs/pictures/syfer-frontier.png

Up: the share of what raw images gain over chance, (AUC - .5) / (AUC of raw images - .5), with the ends of the AUC's
95 % interval. Across: the largest ReID AUC over images, with its interval. Diamonds: utility and leak are of
different images. Trainings whose utility was not measured stand as ticks below, those that were never run in words.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

from leaderboard.answer import HIDDEN, KEPT
from leaderboard.bounds import upward

CERTAIN = 0.999
STEP = 0.035
MISSING = (
    "\nNot trained or not measured: loss weights 200:2, 20:2 and 2:200 beyond 2,000 steps;\n"
    "a second seed of any long training; utility after 2,000 and 20,000 steps; sizes above 64 pixels."
)


def plot(table: pd.DataFrame, target: Path) -> None:
    """A point a training, step and set of released images."""
    sns.set_theme(style="whitegrid")
    figure, axes = plt.subplots(figsize=(9, 6))
    known = table.dropna(subset="utility").copy()
    for name in ("utility", "utility_low", "utility_high"):
        known[name] = (known[name] - 0.5) / (known["raw"] - 0.5)
    looks = {name: f"C{number}" for number, name in enumerate(dict.fromkeys(table["training"]))}
    shapes = {"phantoms": "o", "X-rays of adults": "s", "phantoms; attacked: 388 X-rays of adults": "D"}
    beside = 0
    for number, row in enumerate(known.itertuples()):
        at = row.leak
        if row.leak > CERTAIN:
            at, beside = 1 + STEP * beside, beside + 1
        axes.errorbar(
            at, row.utility, xerr=[[row.leak - row.leak_low], [row.leak_high - row.leak]],
            yerr=[[row.utility - row.utility_low], [row.utility_high - row.utility]],
            color=looks[row.training], marker=shapes[row.images], capsize=2, markersize=7,
        )  # fmt: skip
        up = number % 2 == 0
        told = f"{row.steps:,}" + f"\n{row.attack}" * ("Eve" in row.attack)
        axes.annotate(told, (at, row.utility_high if up else row.utility_low),
                      xytext=(0, 3 if up else -11), textcoords="offset points", fontsize=8, ha="center")  # fmt: skip
    for number, row in enumerate(table[table["utility"].isna()].itertuples()):
        axes.plot(row.leak, -0.2, "|", color=looks[row.training], markersize=12)
        axes.annotate(f"{row.steps:,} ({row.attack})", (row.leak, -0.2), xytext=(0, -16 - 11 * (number % 2)),
                      textcoords="offset points", fontsize=8, ha="center")  # fmt: skip
    axes.fill_betweenx((KEPT, 1.3), HIDDEN, 0.47, color="C0", alpha=0.08)
    axes.text(0.59, 1.2, f"wanted: utility kept,\nReID AUC at most {upward(HIDDEN)}", ha="left", fontsize=9)
    axes.axvline(0.5, color="grey", linestyle=":")
    axes.axhline(0, color="grey", linestyle=":")
    axes.set(xlabel="ReID AUC of the strongest attack (chance .5), 95 % interval; better to the right",
             ylabel="share of raw images' gain that Bob keeps, 95 % interval", xlim=(1.14, 0.47),
             ylim=(-0.34, 1.3), xticks=[1, 0.9, 0.8, 0.7, 0.6, 0.5])  # fmt: skip
    handles = [plt.Line2D([], [], color=colour, label=name) for name, colour in looks.items()]
    handles += [plt.Line2D([], [], color="grey", marker=shape, linestyle="", label=f"released: {name}")
                for name, shape in shapes.items()]  # fmt: skip
    handles += [plt.Line2D([], [], color="grey", marker="|", linestyle="", label="utility not measured")]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.98), fontsize=9)
    figure.text(0.02, 0.01, f"Numbers: training steps. Marks at ReID AUC 1 stand side by side. {MISSING}", fontsize=8)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(target, dpi=120)


def main() -> None:
    """Draw the plot."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("table", type=Path, help="a CSV file with one line a training, step and set of images")
    asked.add_argument("plot", type=Path, help="a PNG or SVG file")
    options = asked.parse_args()
    plot(pd.read_csv(options.table), options.plot)


if __name__ == "__main__":
    main()
