"""Picture of utility against the privacy budget ε, a line a method.

The x axis is the derived ε of a whole released row, so that methods whose papers count differently stand on one axis;
claims about single pixels, which do not compare with those, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from pydantic import JsonValue

from bench.results.records import ScoreRecord
from leaderboard.board import Row, telling
from leaderboard.scatter import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, axis, frame, logarithmic, shortened, titles

METRICS = ("transfer-accuracy", "utility-auc", "detection-auc")  # the first that the rows have is drawn
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
    """Methods with figures at several finite budgets, and references by name."""
    families: dict[tuple[str, str], list[Row]] = {}
    levels: dict[str, ScoreRecord] = {}
    for row in rows:
        found = row.entries[metric].score if metric in row.entries else None
        if found is None:
            continue
        if row.claim is not None and row.claim.derived is not None and row.claim.whole:
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


def budget_plot(rows: Sequence[Row]) -> Markup | None:
    """Picture of utility against derived ε; None without two budgets."""
    drawn: Mapping[str, tuple[list[Curve], dict[str, ScoreRecord]]] = {name: curves(rows, name) for name in METRICS}
    metric = next((name for name, (found, _) in drawn.items() if found), None)
    if metric is None:
        return None
    found, levels = drawn[metric]
    scores = [score for curve in found for score in curve.figures]
    y = axis([*scores, *levels.values()], HEIGHT - BOTTOM, TOP, log=False)
    x = logarithmic([budget for curve in found for budget in curve.budgets], LEFT, WIDTH - RIGHT)
    parts = [frame(x, y)]
    for name, score in sorted(levels.items()):
        height = y.at(score.value)
        parts.append(f'<path class="level" d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(
            f'<text class="name" x="{WIDTH - RIGHT - 4}" y="{height - 4:.1f}" text-anchor="end">{escape(name)}</text>'
        )
    for number, curve in enumerate(found):
        places = [(x.at(budget), y.at(score.value)) for budget, score in zip(curve.budgets, curve.figures, strict=True)]
        parts.append(f'<g class="curve dash-{number % 4}"><title>{escape(curve.label)}</title>')
        parts.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in places)}"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4"/>' for a, b in places]
        a, b = places[0]
        parts.append(f'<text x="{a:.1f}" y="{b - 9:.1f}">{escape(shortened(curve.label))}</text></g>')
    title = escape(rows[0].entries[metric].column.title)
    parts.append(titles("derived ε of one released row, log scale; better to the left ←", f"{title}; better upwards →"))
    told = f"{title} against the derived privacy budget, {len(found)} methods"
    return Markup(f'<svg class="scatter" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{told}">'
                  f'{"".join(parts)}</svg>')  # fmt: skip


def _budget(row: Row) -> float:
    assert row.claim is not None
    assert row.claim.derived is not None
    return row.claim.derived


def name_of(row: Row, parameters: Mapping[str, JsonValue], rows: Sequence[Row]) -> str:
    """A row's method, with preset and seed if they differ."""
    twins = [other for other in rows if other.method == row.method]
    told = [f"{parameter}={value}" for parameter, value in parameters.items()]
    told += [row.preset] * any(other.preset != row.preset for other in twins)
    told += [f"seed {row.seed}"] * any(other.seed != row.seed for other in twins)
    return " ".join([row.method, *told])
