"""Utility against the privacy budget as a picture: what a method keeps at each ε, as in both DP papers' results.

The x axis is the derived ε of a whole released row, so that methods whose papers count differently stand on one axis;
claims about single pixels, which do not compare with those, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import seaborn
from matplotlib.lines import Line2D

from bench.results.records import ScoreRecord
from leaderboard.board import Row, telling
from leaderboard.figures import THEMES, Version, canvas, colours, name_of, shortened

METRICS = ("transfer-accuracy", "utility-auc", "detection-auc")  # the first that the rows have is drawn
LINES = ("-", "--", ":", "-.")
FEWEST = 2
BUDGETS = ("epsilon", "epsilon_per_pixel", "scale")


@dataclass(frozen=True)
class Curve:
    """One method with all parameters but its budget fixed.

    Args:
        method, label: The method, and how the legend tells it from others.
        budgets: Derived ε of each point, ascending.
        figures: Utility of each point.
    """

    method: str
    label: str
    budgets: tuple[float, ...]
    figures: tuple[ScoreRecord, ...]


def curves(rows: Sequence[Row], metric: str) -> tuple[list[Curve], dict[str, ScoreRecord]]:
    """Methods with figures at several finite budgets; and the figures of the reference methods, by name."""
    families: dict[tuple[str, str], list[Row]] = {}
    levels: dict[str, ScoreRecord] = {}
    for row in rows:
        found = row.entries[metric].score if metric in row.entries else None
        if found is None:
            continue
        if row.claim is not None and row.claim.derived is not None and row.claim.unit != "pixel":
            fixed = {name: value for name, value in row.parameters.items() if name not in BUDGETS}
            key = json.dumps([fixed, row.preset, row.seed], sort_keys=True)
            families.setdefault((row.method, key), []).append(row)
        elif any(record.method.role for record in row.records):
            levels.setdefault(row.method, found)
    made = []
    for (method, _), members in families.items():
        if len(members) >= FEWEST:
            points = sorted(members, key=_budget)  # rows stand in an order of their own where budgets are the same
            scores = tuple(score for row in points if (score := row.entries[metric].score) is not None)
            told = {name: value for name, value in telling(members[0], rows).items() if name not in BUDGETS}
            made.append(Curve(method, name_of(members[0], told, rows), tuple(map(_budget, points)), scores))
    return sorted(made, key=lambda curve: curve.label), levels


def budget_plot(rows: Sequence[Row], methods: Sequence[str], theme: Version) -> str | None:
    """An SVG of utility (upwards) against derived ε; None where no method has figures at two budgets.

    Args:
        rows: One section's rows.
        methods: All methods of the board, so that a method keeps its colour in every picture.
        theme: Which version.
    """
    drawn: Mapping[str, tuple[list[Curve], dict[str, ScoreRecord]]] = {name: curves(rows, name) for name in METRICS}
    metric = next((name for name, (found, _) in drawn.items() if found), None)
    if metric is None:
        return None
    found, levels = drawn[metric]
    chosen = THEMES[theme]
    palette = colours(methods, chosen)
    with canvas(chosen, f"budget-{theme}") as (figure, stream):
        axes = figure.add_subplot()
        seen: dict[str, int] = {}
        lines: list[Line2D] = []
        for curve in found:
            style = LINES[seen.setdefault(curve.method, 0) % len(LINES)]
            seen[curve.method] += 1
            values = [score.value for score in curve.figures]
            colour = palette[curve.method]
            lines += axes.plot(curve.budgets, values, style, marker="o", markersize=4.5, color=colour)
            bounds = [(score.low, score.high) for score in curve.figures]
            if all(low is not None and high is not None for low, high in bounds):
                lows, highs = zip(*bounds, strict=True)
                axes.fill_between(curve.budgets, lows, highs, color=colour, alpha=0.12, linewidth=0)
        for name, score in levels.items():
            axes.axhline(score.value, color=chosen.faint, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            axes.annotate(shortened(name), (1, score.value), xycoords=("axes fraction", "data"), xytext=(-3, 3),
                          textcoords="offset points", ha="right", color=chosen.faint, fontsize=8.5,
                          parse_math=False)  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlabel("Derived ε of one released row, log scale\n← better for the data owner")
        axes.set_ylabel(f"{shortened(rows[0].entries[metric].column.title)}\nbetter →", parse_math=False)
        axes.tick_params(length=0)
        legend = axes.legend(lines, [shortened(curve.label) for curve in found], fontsize=8, loc="best")
        for text in legend.get_texts():
            text.set_parse_math(False)
        seaborn.despine(ax=axes)
    return stream.getvalue()


def _budget(row: Row) -> float:
    assert row.claim is not None
    assert row.claim.derived is not None
    return row.claim.derived
