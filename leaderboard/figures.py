"""Utility against privacy as a picture, in a light and a dark version; drawn on Figure objects, never through pyplot."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import matplotlib
import seaborn
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from bench.records import ScoreRecord
from leaderboard.board import Row

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p", "h", "*")
SHIFTS = (
    (9, 0, "left"), (-9, 0, "right"), (0, 10, "center"), (0, -10, "center"), (9, 11, "left"), (9, -11, "left"),
    (-9, 11, "right"), (-9, -11, "right"), (0, 22, "center"), (0, -22, "center"), (14, 24, "left"), (14, -24, "left"),
    (-14, 24, "right"), (-14, -24, "right"), (20, 38, "left"), (20, -38, "left"), (-20, 38, "right"),
    (-20, -38, "right"), (0, 40, "center"), (0, -40, "center"), (30, 54, "left"), (30, -54, "left"),
    (-30, 54, "right"), (-30, -54, "right"),
)  # fmt: skip


@dataclass(frozen=True)
class Theme:
    """Colours of one version: ink, faint ink and ground as #rrggbb, and a seaborn palette that the colour-blind can read."""

    ink: str
    faint: str
    ground: str
    lightness: float


THEMES = {"light": Theme("#1d2329", "#8a939c", "#ffffff", 0.0), "dark": Theme("#e6e8ea", "#7d868f", "#15191d", 0.25)}


@dataclass(frozen=True)
class Point:
    """One row of the board in the plane."""

    label: str
    method: str
    utility: ScoreRecord
    privacy: ScoreRecord


def points(rows: Sequence[Row], metric: str) -> list[Point]:
    """The rows that have both a utility AUC and the privacy figure; preset and seed are named where they tell rows apart."""
    presets = {row.preset for row in rows}
    seeds = {row.seed for row in rows}
    found = []
    for row in rows:
        utility, privacy = row.entries["utility-auc"].score, row.entries[metric].score
        if utility is not None and privacy is not None:
            extra = [row.preset] * (len(presets) > 1) + [f"seed {row.seed}"] * (len(seeds) > 1)
            found.append(Point(" · ".join([_short(row.label), *extra]), row.method, utility, privacy))
    return found


def plane(
    rows: Sequence[Row],
    metric: Literal["reid-auc", "guesswork"],
    methods: Sequence[str],
    theme: Literal["light", "dark"],
) -> str | None:
    """An SVG of utility (upwards) against the weakest privacy figure (better to the right); None without points.

    Args:
        rows: One section's rows.
        metric: "reid-auc" on a reversed axis, "guesswork" on a logarithmic one.
        methods: All methods of the board, so that a method keeps its colour and marker in every picture.
        theme: Which version.
    """
    chosen, shown = THEMES[theme], points(rows, metric)
    if not shown:
        return None
    style = {
        "text.color": chosen.ink, "axes.labelcolor": chosen.ink, "xtick.color": chosen.ink, "ytick.color": chosen.ink,
        "axes.edgecolor": chosen.faint, "axes.facecolor": chosen.ground, "figure.facecolor": chosen.ground,
        "grid.color": chosen.faint, "grid.alpha": 0.25, "grid.linewidth": 0.6, "axes.linewidth": 0.8, "font.size": 9.5,
        "font.family": "DejaVu Sans", "svg.hashsalt": f"{metric}-{theme}", "svg.fonttype": "path",
    }  # fmt: skip
    with matplotlib.rc_context({**seaborn.axes_style("whitegrid"), **style}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a box in its place is enough
        figure = Figure(figsize=(6.4, 4.7), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        _draw(axes, shown, metric, list(methods), chosen)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        _name(axes, shown, chosen)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _draw(axes: Axes, shown: Sequence[Point], metric: str, methods: list[str], theme: Theme) -> None:
    colours = seaborn.color_palette("colorblind", 10)
    if theme.lightness:
        colours = [tuple(c + (1 - c) * theme.lightness for c in colour) for colour in colours]
    palette = {method: colours[index % len(colours)] for index, method in enumerate(methods)}
    markers = {method: MARKERS[index % len(MARKERS)] for index, method in enumerate(methods)}
    x, y = [point.privacy.value for point in shown], [point.utility.value for point in shown]
    if metric == "guesswork":
        axes.set_xscale("log")
    _chance(axes, [point.privacy for point in shown], axes.axvline, axes.axvspan, theme)
    _chance(axes, [point.utility for point in shown], axes.axhline, None, theme)
    for point in shown:
        colour = palette[point.method]
        _whisker(axes, point, colour)
    seaborn.scatterplot(
        x=x, y=y, hue=[p.method for p in shown], style=[p.method for p in shown], palette=palette, markers=markers,
        s=58, linewidth=0.9, edgecolor=theme.ground, legend=False, zorder=4, ax=axes,
    )  # fmt: skip
    axes.margins(0.12)
    if metric == "reid-auc":
        axes.invert_xaxis()
    title = {"reid-auc": "ReID AUC, reversed axis", "guesswork": "Guesswork, log scale"}[metric]
    axes.set_xlabel(f"{title}: weakest attack that ran\nbetter for the data owner →")
    axes.set_ylabel("Utility AUC\nbetter →")
    axes.tick_params(length=0)
    seaborn.despine(ax=axes)


def _whisker(axes: Axes, point: Point, colour: tuple[float, ...]) -> None:
    u, p = point.utility, point.privacy
    if p.low is not None and p.high is not None:
        axes.plot([p.low, p.high], [u.value, u.value], color=colour, linewidth=1.2, alpha=0.75, zorder=3)
    if u.low is not None and u.high is not None:
        axes.plot([p.value, p.value], [u.low, u.high], color=colour, linewidth=1.2, alpha=0.75, zorder=3)


def _chance(axes: Axes, scores: Sequence[ScoreRecord], line, span, theme: Theme) -> None:  # type: ignore[no-untyped-def]
    """A line where chance stands if all rows share it, and a band over its 95 % intervals."""
    nulls = {score.null for score in scores if score.null is not None}
    lows = [score.null_low for score in scores if score.null_low is not None]
    highs = [score.null_high for score in scores if score.null_high is not None]
    if span and lows and highs:
        span(min(lows), max(highs), color=theme.faint, alpha=0.16, linewidth=0, zorder=0)
    for null in sorted(nulls)[:4]:
        line(null, color=theme.faint, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    if nulls and span:
        axes.annotate(
            "chance", (max(nulls), 1), xycoords=("data", "axes fraction"), xytext=(4, -3), textcoords="offset points",
            color=theme.faint, fontsize=8.5, va="top", ha="left", zorder=2,
        )  # fmt: skip


def _name(axes: Axes, shown: Sequence[Point], theme: Theme) -> None:
    """Label the points where a label fits; each takes the first place that covers no point and no other label."""
    renderer = axes.figure.canvas.get_renderer()  # type: ignore[attr-defined]
    spots = [axes.transData.transform((point.privacy.value, point.utility.value)) for point in shown]
    taken = [Bbox.from_extents(x - 5, y - 5, x + 5, y + 5) for x, y in spots]
    frame = axes.get_window_extent(renderer).padded(2)
    for point in sorted(shown, key=lambda p: (-p.utility.value, p.label)):
        for index, (dx, dy, side) in enumerate(SHIFTS):
            text = axes.annotate(
                point.label, (point.privacy.value, point.utility.value), xytext=(dx, dy), textcoords="offset points",
                ha=side, va="center", fontsize=8.5, color=theme.ink, zorder=5, parse_math=False,
                arrowprops={"arrowstyle": "-", "color": theme.faint, "linewidth": 0.6} if index > 7 else None,
            )  # fmt: skip
            box = text.get_window_extent(renderer) if index <= 7 else _box(text, renderer)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()


def _box(text, renderer) -> Bbox:  # type: ignore[no-untyped-def]
    """The extent of an annotation's words, without its leader."""
    from matplotlib.text import Text

    text.update_positions(renderer)
    return Text.get_window_extent(text, renderer)


def _short(label: str, length: int = 34) -> str:
    line = " ".join(label.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
