"""Utility against privacy or diversity as a picture, light and dark; drawn on Figure objects, never through pyplot."""

from __future__ import annotations

import io
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
import numpy as np
import seaborn
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from pydantic import JsonValue

from bench.results.records import ScoreRecord
from leaderboard.board import Row, telling

Version = Literal["light", "dark"]
POINT = 100 / 72  # pixels in a point at the 100 dots an inch of these figures
PALE = (7, 8)  # grey, which stands for chance here, and yellow, which vanishes on white
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p", "h", "*")
SHIFTS = [
    (dx * side, dy * height)
    for dx, dy in (
        (7, 8),
        (9, 0),
        (0, 13),
        (7, 20),
        (16, 32),
        (0, 30),
        (34, 20),
        (24, 46),
        (60, 34),
        (40, 64),
        (90, 50),
    )
    for height in (1, -1)
    for side in (1, -1)
]  # where a label may stand, in points from its mark, nearest first


@dataclass(frozen=True)
class Theme:
    """Colours of one version as #rrggbb; how far the palette moves towards black (0) or white (1) to stand out."""

    ink: str
    faint: str
    ground: str
    target: float
    shift: float


THEMES = {
    "light": Theme("#1d2329", "#8a939c", "#ffffff", 0.0, 0.18),
    "dark": Theme("#e6e8ea", "#7d868f", "#15191d", 1.0, 0.25),
}


@dataclass(frozen=True)
class Plane:
    """What a picture shows: utility upwards, another figure to the right, both better for the data owner that way.

    Args:
        across, up: Metrics.
        log: Whether the axis across is logarithmic.
        references: Whether reference methods are drawn, which lie far from all others in some figures.
    """

    across: str
    up: str = "utility-auc"
    log: bool = False
    references: bool = True


PLANES = (
    Plane("reid-auc"),
    Plane("guesswork", log=True),
    Plane("membership-auc", "linear-probe-auc"),
    Plane("nearest-neighbour-distance", "linear-probe-auc", references=False),
)


@dataclass(frozen=True)
class Point:
    """One row of the board in the plane."""

    label: str
    method: str
    utility: ScoreRecord
    privacy: ScoreRecord


def titles(rows: Sequence[Row], what: Plane) -> tuple[str, str]:
    """What stands on the axes, across and up, of a picture that has points."""
    across, up = (rows[0].entries[name].column for name in (what.across, what.up))
    how = ", reversed axis" * (across.better == "lower") + ", log scale" * what.log
    attacked = any(row.entries[what.across].attacked for row in rows)
    return f"{shortened(across.title)}{how}{': weakest attack that ran' * attacked}", shortened(up.title)


def alternative(rows: Sequence[Row], what: Plane) -> str:
    """The picture in words."""
    across, up = titles(rows, what)
    return f"{up} against {across}, one point a row,"


def points(rows: Sequence[Row], shown: Plane) -> list[Point]:
    """The rows with both figures, each labelled by its method and by whatever tells it from the method's other rows."""
    found = []
    for row in rows:
        utility, privacy = (
            row.entries[name].score if name in row.entries else None for name in (shown.up, shown.across)
        )
        drawn = shown.references or row.records[0].method.role is None
        if row.unrated and shown.across in row.entries and row.entries[shown.across].attacked:
            continue
        if drawn and utility is not None and privacy is not None:
            found.append(Point(shortened(name_of(row, unusual(row, rows), rows)), row.method, utility, privacy))
    return found


def unusual(row: Row, rows: Sequence[Row]) -> Mapping[str, JsonValue]:
    """The parameters that tell a row from others of its method, without those at a value that most of them have."""
    twins = [other.parameters for other in rows if other.method == row.method]

    def usual(name: str) -> bool:
        counts = Counter(repr(twin.get(name)) for twin in twins)
        return 2 * counts[repr(row.parameters.get(name))] > len(twins)

    return {name: value for name, value in telling(row, rows).items() if not usual(name)}


def name_of(row: Row, parameters: Mapping[str, JsonValue], rows: Sequence[Row]) -> str:
    """A row's method with these parameters, and with preset and seed where others of its method have another."""
    twins = [other for other in rows if other.method == row.method]
    told = [f"{parameter}={value}" for parameter, value in parameters.items()]
    told += [row.preset] * any(other.preset != row.preset for other in twins)
    told += [f"seed {row.seed}"] * any(other.seed != row.seed for other in twins)
    return " ".join([row.method, *told])


def plane(rows: Sequence[Row], what: Plane, methods: Sequence[str], theme: Version) -> str | None:
    """An SVG of utility (upwards) against another figure (better to the right); None without points.

    Args:
        rows: One section's rows.
        what: The two figures.
        methods: All methods of the board, so that a method keeps its colour and marker in every picture.
        theme: Which version.
    """
    chosen, shown = THEMES[theme], points(rows, what)
    if not shown:
        return None
    with canvas(chosen, f"{what.across}-{theme}") as (figure, stream):
        axes = figure.add_subplot()
        _draw(axes, shown, log=what.log, methods=list(methods), theme=chosen)
        if rows[0].entries[what.across].column.better == "lower":
            axes.invert_xaxis()
        across, up = titles(rows, what)
        axes.set_xlabel(f"{across}\nbetter for the data owner →", parse_math=False)
        axes.set_ylabel(f"{up}\nbetter →", parse_math=False)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        _name(axes, shown, chosen)
    return stream.getvalue()


@contextmanager
def canvas(theme: Theme, salt: str) -> Iterator[tuple[Figure, io.StringIO]]:
    """A figure in the colours of `theme`; afterwards the stream holds it as SVG, the same bits every time."""
    style: dict[Any, Any] = seaborn.axes_style("whitegrid") | {
        "text.color": theme.ink, "axes.labelcolor": theme.ink, "xtick.color": theme.ink, "ytick.color": theme.ink,
        "axes.edgecolor": theme.faint, "axes.facecolor": theme.ground, "figure.facecolor": theme.ground,
        "grid.color": theme.faint, "grid.alpha": 0.25, "grid.linewidth": 0.6, "axes.linewidth": 0.8, "font.size": 9.5,
        "font.family": "DejaVu Sans", "svg.hashsalt": salt, "svg.fonttype": "path", "legend.frameon": False,
    }  # fmt: skip
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a box in its place is enough
        figure = Figure(figsize=(6.4, 4.7), dpi=100, layout="constrained")
        FigureCanvasAgg(figure)
        stream = io.StringIO()
        yield figure, stream
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})


def colours(methods: Sequence[str], theme: Theme) -> dict[str, tuple[float, ...]]:
    """A colour a method, the same in every picture of a board."""
    usable = [colour for index, colour in enumerate(seaborn.color_palette("colorblind", 10)) if index not in PALE]
    found = [tuple(c + (theme.target - c) * theme.shift for c in colour) for colour in usable]
    return {method: found[index % len(found)] for index, method in enumerate(methods)}


def _draw(axes: Axes, shown: Sequence[Point], *, log: bool, methods: list[str], theme: Theme) -> None:
    palette = colours(methods, theme)
    markers = {method: MARKERS[index % len(MARKERS)] for index, method in enumerate(methods)}
    x, y = [point.privacy.value for point in shown], [point.utility.value for point in shown]
    if log:
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
    """Label the points where a label fits; each takes the first place that covers no point, whisker or other label."""
    renderer = axes.figure.canvas.get_renderer()  # type: ignore[attr-defined]
    taken = np.array([box for point in shown for box in _covered(axes, point)])
    left, low, right, high = axes.get_window_extent(renderer).extents
    for point in sorted(shown, key=lambda p: (-p.utility.value, p.label)):
        spot = (point.privacy.value, point.utility.value)
        text = axes.annotate(
            point.label, spot, xytext=(0, 0), textcoords="offset points", fontsize=8.5, color=theme.ink, zorder=6,
            ha="left", va="center", parse_math=False, path_effects=[withStroke(linewidth=2.5, foreground=theme.ground)],
            arrowprops={"arrowstyle": "-", "color": theme.faint, "linewidth": 0.6},
        )  # fmt: skip
        words = Text.get_window_extent(text, renderer)  # without the leader
        x, y = axes.transData.transform(spot)
        for dx, dy in SHIFTS:
            side = 0 if dx > 0 else words.width if dx < 0 else words.width / 2
            x0, y0 = x + dx * POINT - side, y + dy * POINT - words.height / 2
            x1, y1 = x0 + words.width, y0 + words.height
            clear = (taken[:, 0] > x1) | (taken[:, 2] < x0) | (taken[:, 1] > y1) | (taken[:, 3] < y0)
            if left <= x0 and x1 <= right and low <= y0 and y1 <= high and clear.all():
                taken = np.vstack((taken, (x0, y0, x1, y1)))
                text.set_position((dx, dy))
                text.set_horizontalalignment("left" if dx > 0 else "right" if dx < 0 else "center")
                if text.arrow_patch is not None:
                    text.arrow_patch.set_visible(abs(dx) + abs(dy) > 24)
                break
        else:
            text.remove()


def _covered(axes: Axes, point: Point) -> list[tuple[float, float, float, float]]:
    """What a point and its whiskers cover: left, low, right and high, in pixels."""
    u, p = point.utility, point.privacy
    x, y = axes.transData.transform((p.value, u.value))
    boxes = [(x - 5, y - 5, x + 5, y + 5)]
    if p.low is not None and p.high is not None:
        ends = sorted(axes.transData.transform([(p.low, u.value), (p.high, u.value)])[:, 0])
        boxes.append((ends[0], y - 1, ends[1], y + 1))
    if u.low is not None and u.high is not None:
        ends = sorted(axes.transData.transform([(p.value, u.low), (p.value, u.high)])[:, 1])
        boxes.append((x - 1, ends[0], x + 1, ends[1]))
    return boxes


def shortened(label: str, length: int = 34) -> str:
    """One line of at most that many characters."""
    line = " ".join(label.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
