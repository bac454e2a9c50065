"""Charts for papers: scatter plots, grids, curves and risk by person.

They draw numbers of records alone: no image, no file name and no person's number gets here. Colours are seaborn's
"colorblind" palette, each with a marker of its own; fonts are those that matplotlib carries, so that the same figures
give the same bytes.
"""

from __future__ import annotations

__figures__ = False

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
import numpy as np
import seaborn
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import Bbox

Form = Literal["pdf", "svg", "png"]
Width = Literal["column", "page"]
INCHES: dict[Width, float] = {"column": 3.35, "page": 7.0}
"""Widths of a column (85 mm) and of a page (178 mm)."""
DOTS = 300
MARKERS = "os^Dv<>ph"
"""One of another length than the palette, so that the pair of both seldom comes again."""
SIZE, SMALL, TINY, BELOW = 7.0, 6.0, 5.0, 3.8  # points
GREY, PALE, BAND = "#6b7278", "#eceff1", "#d5dade"
CHANCE = "chance"
"""The label of a line without a marker, in grey."""
METADATA: dict[Form, dict[str, None]] = {
    "pdf": {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans", "font.size": SIZE, "axes.labelsize": SIZE, "axes.titlesize": SIZE,
    "xtick.labelsize": SMALL, "ytick.labelsize": SMALL, "legend.fontsize": SMALL, "axes.linewidth": 0.6,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.minor.width": 0.4, "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5, "ytick.major.size": 2.5, "xtick.minor.size": 1.5, "ytick.minor.size": 1.5,
    "pdf.fonttype": 42, "svg.hashsalt": "veil-bench", "axes.unicode_minus": True, "text.parse_math": False,
}  # fmt: skip


@dataclass(frozen=True)
class Span:
    """A figure with its 95 % interval; None without one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Scale:
    """An axis, with the 95 % interval of chance if known."""

    title: str
    log: bool = False
    chance: tuple[float, float] | None = None


@dataclass(frozen=True)
class Point:
    """A row in the plane.

    Args:
        label: Its name.
        family: Its colour and marker are those of this.
        x, y: Its figures.
        hollow: Drawn without a filling, for a figure that supports no claim.
    """

    label: str
    family: str
    x: Span
    y: Span
    hollow: bool = False


@dataclass(frozen=True)
class Grid:
    """A table of colours.

    Args:
        rows, columns: Names.
        values: By row and column; None has no colour.
        texts: What stands in each place; "" for nothing.
        below: A smaller line below each text.
        scale: Of the colours.
        ends: The values of the palest and of the darkest colour; the first may be the larger.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]
    texts: Sequence[Sequence[str]]
    below: Sequence[Sequence[str]]
    scale: Scale
    ends: tuple[float, float]


@dataclass(frozen=True)
class Line:
    """A curve.

    Args:
        label: In the legend; lines of one label share it and their colour.
        points: x and y, x rising.
        spans: Points with an interval, drawn over the line.
        broken: Drawn with dashes.
    """

    label: str
    points: Sequence[tuple[float, float]]
    spans: Sequence[tuple[float, Span]] = ()
    broken: bool = False


@dataclass(frozen=True)
class Risk:
    """The risk of a row's people.

    Args:
        label: The row, and the attack.
        median, rare: The rates of the median person and of the person at 95 %; None if unknown.
        worst: The rate of the person most at risk, with bounds that hold for all people at once.
        chance: The 95 % interval of the worst person under random scores; None if unknown.
        shares: Each rate that people have, and the share of people who have it; empty if unknown.
    """

    label: str
    median: float | None
    rare: float | None
    worst: Span
    chance: tuple[float, float] | None
    shares: Sequence[tuple[float, float]] = ()


def trade_off(points: Sequence[Point], x: Scale, y: Scale, title: str, *, width: Width, form: Form) -> bytes:
    """Rows in a plane of two figures, with intervals on both."""
    with _style():
        inches = INCHES[width]
        left, bottom, top = 0.5, 0.4, _title_height(title, inches)
        high = 0.68 * inches if width == "column" else 0.5 * inches
        height = bottom + high + top
        figure = Figure(figsize=(inches, height))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((left / inches, bottom / height, 1 - (left + 0.08) / inches, high / height))
        _prepare(axes, x, y)
        _write_title(figure, title)
        looks = _looks(dict.fromkeys(point.family for point in points))
        for point in points:
            colour, marker = looks[point.family]
            for one, other, along in ((point.x, point.y, True), (point.y, point.x, False)):
                if one.low is not None and one.high is not None:
                    ends, at = (one.low, one.high), (other.value, other.value)
                    axes.plot(*((ends, at) if along else (at, ends)), color=colour, lw=0.8, alpha=0.7, zorder=2,
                              solid_capstyle="butt")  # fmt: skip
            faces = {"mfc": "white", "mec": colour, "mew": 0.8} if point.hollow else {"mec": "white", "mew": 0.3}
            axes.plot(point.x.value, point.y.value, marker, color=colour, ms=4.2, zorder=3, **faces)
        _limits(axes, points, x, y)
        if not _label_points(axes, points, looks, [point.label for point in points]):
            _number_points(figure, axes, points, looks)
        return _bytes(figure, form)


def _write_title(figure: Figure, title: str) -> None:
    """The title in grey, at the top on the left."""
    wide, high = figure.get_size_inches()
    figure.text(0.03 / wide, 1 - 0.04 / high, _wrapped(title, wide), va="top", color=GREY, fontsize=SMALL)


def _title_height(title: str, inches: float) -> float:
    """Inches that a title takes, with some room."""
    return 0.115 * (1 + _wrapped(title, inches).count("\n")) + 0.08


def _inches(text: str, size: float) -> float:
    """The width of the longest line of a text."""
    font = FontProperties(family="DejaVu Sans")
    lines = (line for line in text.splitlines() if line)
    widths = (float(TextPath((0, 0), line, size=size, prop=font).get_extents().width) for line in lines)
    return max(widths, default=0.0) / 72


def _fitted(names: Sequence[str], size: float, most: float) -> list[str]:
    """Names on several lines if wider than so many inches."""

    def broken(name: str) -> str:
        if _inches(name, size) <= most:
            return name
        head, bracket, rest = name.partition("[")
        lines = [head]
        for part in (bracket + rest).replace(",", ",\0").split("\0") if rest else []:
            if len(lines) > 1 and _inches(lines[-1] + part, size) <= most:
                lines[-1] += part
            else:
                lines.append(part)
        return "\n".join(lines)

    return [broken(name) for name in names]


def _prepare(axes: Axes, x: Scale, y: Scale) -> None:
    axes.set_xlabel(x.title)
    axes.set_ylabel(y.title)
    for scale, axis in ((x, axes.xaxis), (y, axes.yaxis)):
        if scale.log:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
            axis.set_major_locator(LogLocator(numticks=8))
            axis.set_minor_formatter(NullFormatter())
            axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    if x.chance is not None:
        axes.axvspan(*x.chance, color=PALE, zorder=0, lw=0)
    if y.chance is not None:
        axes.axhspan(*y.chance, color=PALE, zorder=0, lw=0)
    seaborn.despine(ax=axes)


def _wrapped(text: str, inches: float) -> str:
    from textwrap import fill

    return fill(text, round(inches * 21))


def _limits(axes: Axes, points: Sequence[Point], x: Scale, y: Scale) -> None:
    """Room around all intervals, and around chance."""
    for scale, spans, put in (
        (x, [point.x for point in points], axes.set_xlim), (y, [point.y for point in points], axes.set_ylim)
    ):  # fmt: skip
        ends = [end for span in spans for end in (span.low, span.value, span.high) if end is not None]
        ends += scale.chance or ()
        if scale.log:
            ends = [math.log10(max(end, 1e-9)) for end in ends]
        low, high = min(ends), max(ends)
        room = 0.07 * (high - low) or 0.05
        low, high = low - room, high + room
        put(10**low, 10**high) if scale.log else put(low, high)


def _looks(families: Sequence[str] | dict[str, None]) -> dict[str, tuple[Any, str]]:
    """The colour and marker of each family, in order."""
    palette = seaborn.color_palette("colorblind")
    # Pink, grey and yellow are too pale for a thin line, or look like chance.
    colours = [colour for place, colour in enumerate(palette) if place not in (6, 7, 8)]
    return {
        name: (colours[number % len(colours)], MARKERS[number % len(MARKERS)]) for number, name in enumerate(families)
    }


SPOTS = [
    (distance * across, distance * up)
    for distance in (5.0, 9.0, 14.0, 20.0)
    for across, up in ((1, 0.5), (1, -0.5), (-1, 0.5), (-1, -0.5), (0, 1.2), (0, -1.2), (1, 1.4), (-1, 1.4), (1, -1.4),
                       (-1, -1.4))
]  # fmt: skip
"""Offsets of a label from its point, in points of a font, in the order of trying."""


def _label_points(
    axes: Axes, points: Sequence[Point], looks: dict[str, tuple[Any, str]], labels: Sequence[str], size: float = SMALL
) -> bool:
    """Write labels in free places; False, and none, if one has none."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    figure.canvas.draw()
    inside = axes.get_window_extent()
    scale = figure.dpi / 72
    taken = [_around(axes.transData.transform((one.x.value, one.y.value)), 3.2 * scale) for one in points]
    thin = [box for one in points for box in _whiskers(axes, one, scale)]
    order = sorted(range(len(points)), key=lambda place: -taken[place].x0)
    written = []
    for place in order:
        point = points[place]
        colour, _ = looks[point.family]
        text = axes.annotate(
            labels[place], (point.x.value, point.y.value), xytext=(0, 0), textcoords="offset points", fontsize=size,
            color=[0.75 * part for part in colour], annotation_clip=False, zorder=4,
        )  # fmt: skip
        written.append(text)
        spot = _free_spot(text, point, axes, inside, taken, thin, scale)
        if spot is None:
            for one in written:
                one.remove()
            return False
        taken.append(text.get_window_extent().padded(0.6 * scale))
        if math.hypot(*spot) > 12:
            end = axes.annotate(
                "", (point.x.value, point.y.value), xytext=(0.75 * spot[0], 0.75 * spot[1]),
                textcoords="offset points", arrowprops={"arrowstyle": "-", "lw": 0.4, "color": GREY, "shrinkB": 3},
            )  # fmt: skip
            written.append(end)
    return True


def _free_spot(
    text: Any, point: Point, axes: Axes, inside: Bbox, taken: Sequence[Bbox], thin: Sequence[Bbox], scale: float
) -> tuple[float, float] | None:
    """Move the text to the first free spot, best off intervals."""
    for avoided in ([*taken, *thin], taken):
        for across, up in SPOTS:
            text.set_ha("left" if across > 0 else "right" if across < 0 else "center")
            text.set_va("center" if across else "bottom" if up > 0 else "top")
            text.set_position((across, up))
            box = text.get_window_extent()
            within = box.x0 >= inside.x0 and box.x1 <= inside.x1 and box.y0 >= inside.y0 and box.y1 <= inside.y1
            if within and not any(box.overlaps(other) for other in avoided):
                return across, up
    return None


def _around(place: Any, room: float) -> Bbox:
    x, y = place
    return Bbox.from_extents(x - room, y - room, x + room, y + room)


def _whiskers(axes: Axes, point: Point, scale: float) -> list[Bbox]:
    boxes = []
    for one, along in ((point.x, True), (point.y, False)):
        if one.low is None or one.high is None:
            continue
        places = [(end, point.y.value) if along else (point.x.value, end) for end in (one.low, one.high)]
        (a, b), (c, d) = axes.transData.transform(places)
        boxes.append(Bbox.from_extents(a - scale / 2, b - scale / 2, c + scale / 2, d + scale / 2))
    return boxes


def _number_points(figure: Figure, axes: Axes, points: Sequence[Point], looks: dict[str, tuple[Any, str]]) -> None:
    """Numbers beside the points, and their names below the axes."""
    order = sorted(range(len(points)), key=lambda place: (points[place].family, points[place].label))
    numbers = {place: str(number) for number, place in enumerate(order, 1)}
    labels = _fitted([point.label for point in points], TINY, figure.get_figwidth() - 0.45)
    longest = max(_inches(f"00 {line}", TINY) for label in labels for line in label.splitlines())
    columns = max(1, min(4, int(figure.get_figwidth() / (longest + 0.25))))
    lines = math.ceil(sum(label.count("\n") + 1 for label in labels) / columns)
    handles = [
        Line2D([], [], ls="", marker=looks[points[place].family][1], color=looks[points[place].family][0], ms=3.5,
               mfc="white" if points[place].hollow else looks[points[place].family][0],
               label=f"{numbers[place]} {labels[place]}")
        for place in order
    ]  # fmt: skip
    height, more = figure.get_figheight(), 0.088 * lines + 0.06
    left, bottom, across, up = axes.get_position().bounds
    figure.set_figheight(height + more)
    axes.set_position((left, (bottom * height + more) / (height + more), across, up * height / (height + more)))
    for text in figure.texts:
        text.set_y(1 - 0.04 / (height + more))
    figure.legend(handles=handles, loc="lower center", ncols=columns, frameon=False, fontsize=TINY, handletextpad=0.1,
                  columnspacing=1.0, labelspacing=0.25, borderaxespad=0.1)  # fmt: skip
    texts = [numbers[place] for place in range(len(points))]
    for size in (TINY, 4.0):
        if _label_points(axes, points, looks, texts, size):
            return
    for place, point in enumerate(points):  # so many points on one place: the numbers lie on one another, the key helps
        axes.annotate(texts[place], (point.x.value, point.y.value), xytext=(3, 3), textcoords="offset points",
                      fontsize=4.0)  # fmt: skip


def grid(table: Grid, title: str, *, width: Width, form: Form) -> bytes:
    """A grid of coloured places with figures in them."""
    with _style():
        inches = INCHES[width]
        names = _fitted(table.rows, SMALL, 0.42 * inches)
        left = max(_inches(name, SMALL) for name in names) + 0.1
        cell = min(0.75, (inches - left - 0.05) / max(1, len(table.columns)))
        deep = max(name.count("\n") for name in names) + 1
        roomy = max((_inches(text, BELOW) for line in table.below for text in line), default=0.0) < 0.98 * cell
        title += "; small: 95 % interval" * (roomy and any(text for line in table.below for text in line))
        high = max(0.24 if roomy else 0.17, 0.1 * deep + 0.03)
        turned = max(_inches(name, SMALL) for name in table.columns) > 0.95 * cell
        head = 0.1 + (max(_inches(name, SMALL) for name in table.columns) if turned else 0.1)
        bar, top = 0.42, _title_height(title, inches)
        height = top + head + high * len(table.rows) + bar
        figure = Figure(figsize=(inches, height))
        FigureCanvasAgg(figure)
        across = cell * len(table.columns)
        axes = figure.add_axes((left / inches, bar / height, across / inches, high * len(table.rows) / height))
        colours = seaborn.color_palette("blend:#f3f6f9,#8fb8de,#0173b2,#0b2545", as_cmap=True)
        first, last = (math.log10(end) for end in table.ends) if table.scale.log else table.ends
        norm = Normalize(min(first, last), max(first, last), clip=True)
        for row, values in enumerate(table.values):
            for column, value in enumerate(values):
                share = (
                    None if value is None else float(norm(math.log10(max(value, 1e-9)) if table.scale.log else value))
                )
                share = share if share is None or last > first else 1 - share
                _place(axes, (column, row), share, colours, table, cell, roomy=roomy)
        axes.set_xlim(0, len(table.columns))
        axes.set_ylim(len(table.rows), 0)
        axes.xaxis.tick_top()
        axes.set_xticks(
            [place + 0.5 for place in range(len(table.columns))], table.columns, rotation=90 if turned else 0
        )
        axes.set_yticks([place + 0.5 for place in range(len(table.rows))], names)
        axes.tick_params(length=0, pad=2)
        axes.spines[:].set_visible(False)
        _write_title(figure, title)
        _colour_bar(figure, table, colours, (left / inches, 0.24 / height, min(across, 2.2) / inches, 0.07 / height))
        return _bytes(figure, form)


def _size_within(text: str, width: float) -> float:
    """Points of a text that leaves a margin in so many inches."""
    em = SMALL / 72  # a small text is set wider than its outlines, by up to a third of it
    return min(SMALL, SMALL * 0.86 * width / (_inches(text, SMALL) + 0.3 * em))


def _place(
    axes: Axes, at: tuple[int, int], share: float | None, colours: Any, table: Grid, cell: float, *, roomy: bool
) -> None:
    column, row = at
    colour = (1.0, 1.0, 1.0) if share is None else colours(share)
    hatch = None if share is not None else "/////"
    axes.add_patch(Rectangle((column, row), 1, 1, fc=colour, ec="#dfe3e6" if hatch else "white", lw=0.8, hatch=hatch))
    text, below = table.texts[row][column], table.below[row][column]
    if not text:
        return
    ink = "white" if share is not None and _dark(colour) else "#202427"
    roomy = roomy and bool(below)
    size = _size_within(text, cell)
    back = {"fc": "white", "ec": "none", "pad": 0.4} if hatch else None
    axes.text(column + 0.5, row + (0.33 if roomy else 0.5), text, ha="center", va="center", fontsize=size, color=ink,
              bbox=back)  # fmt: skip
    if roomy:
        axes.text(column + 0.5, row + 0.75, below, ha="center", va="center", fontsize=BELOW, color=ink)


def _dark(colour: Sequence[float]) -> bool:
    """True if white letters are read better on it (relative luminance, WCAG)."""
    red, green, blue = ((part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4) for part in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.18


def _colour_bar(figure: Figure, table: Grid, colours: Any, place: tuple[float, float, float, float]) -> None:
    axes = figure.add_axes(place)
    first, last = table.ends
    steps = np.linspace(0, 1, 128)[None]
    axes.imshow(steps, aspect="auto", cmap=colours, extent=(0, 1, 0, 1))
    axes.set_yticks([])
    number = "{:,.0f}".format if table.scale.log else "{:g}".format
    middle = 10 ** ((math.log10(first) + math.log10(last)) / 2) if table.scale.log else (first + last) / 2
    axes.set_xticks([0, 0.5, 1], [number(first), number(middle), number(last)])
    axes.tick_params(length=1.5, pad=1, labelsize=TINY)
    wide, high = figure.get_size_inches()
    half = _inches(table.scale.title, SMALL) / 2 + 0.03  # the title may be wider than the bar
    middle_of_bar = min(max((place[0] + place[2] / 2) * wide, half), wide - half)
    figure.text(middle_of_bar / wide, 0.04 / high, table.scale.title, ha="center", va="bottom", fontsize=SMALL)
    axes.spines[:].set_visible(False)


def curves(panels: Sequence[tuple[Scale, Sequence[Line]]], x: Scale, title: str, *, width: Width, form: Form) -> bytes:
    """Curves over one kind of axis, a panel for each figure."""
    with _style():
        inches = INCHES[width]
        labels = list(dict.fromkeys(line.label for _, lines in panels for line in lines))
        looks = _looks([label for label in labels if label != CHANCE]) | {CHANCE: (GREY, "")}
        columns = 1 if width == "column" or len(panels) == 1 else 2
        down = math.ceil(len(panels) / columns)
        key = max(1, int(inches / (max(_inches(name, SMALL) for name in labels) + 0.4)))
        legend, top = 0.13 * math.ceil(len(labels) / key) + 0.1, _title_height(title, inches)
        each = 0.68 * inches / columns if width == "column" else min(2.4, 0.62 * inches / columns)
        height = down * each + legend + top
        figure = Figure(figsize=(inches, height), layout="constrained")
        FigureCanvasAgg(figure)
        figure.get_layout_engine().set(rect=(0, legend / height, 1, 1 - (legend + top) / height))  # type: ignore[union-attr, call-arg]
        places = figure.subplots(down, columns, squeeze=False).flatten()
        for axes in places[len(panels) :]:
            axes.set_visible(False)
        for axes, (y, lines) in zip(places, panels, strict=False):
            _prepare(axes, x, y)
            axes.set_ylabel("")
            axes.set_title(_wrapped(y.title, inches / columns), loc="left", fontsize=SMALL)
            if not x.log:
                axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            for line in lines:
                _curve(axes, line, looks[line.label])
        handles = [
            Line2D([], [], color=looks[name][0], marker=looks[name][1], ms=3, lw=1, label=name) for name in labels
        ]
        figure.legend(handles=handles, loc="lower left", ncols=key, frameon=False, columnspacing=1.0)
        _write_title(figure, title)
        return _bytes(figure, form)


def _curve(axes: Axes, line: Line, look: tuple[Any, str]) -> None:
    colour, marker = look
    xs, ys = zip(*line.points, strict=True)
    every = max(1, len(xs) // 8)
    axes.plot(xs, ys, color=colour, lw=1.0, ls="--" if line.broken else "-", marker=marker, ms=2.6, mec="white",
              mew=0.3, markevery=every, zorder=3)  # fmt: skip
    for place, span in line.spans:
        if span.low is not None and span.high is not None:
            axes.plot([place, place], [span.low, span.high], color=colour, lw=1.6, alpha=0.45, zorder=2,
                      solid_capstyle="butt")  # fmt: skip


BESIDE = 0.044
"""Inches between the marks of a person's risk."""


def person_risk(rows: Sequence[Risk], title: str, *, width: Width, form: Form) -> bytes:
    """Risk of the typical, the rare and the worst person by row."""
    with _style():
        inches = INCHES[width]
        names = ["\n".join(_fitted(row.label.splitlines(), SMALL, 0.4 * inches)) for row in rows]
        left = max(_inches(name, SMALL) for name in names) + 0.12
        deep, top = [0.1 * (name.count("\n") + 1) + 0.1 for name in names], _title_height(title, inches)
        centres = [sum(deep[:row]) + own / 2 for row, own in enumerate(deep)]  # in inches, as the axis of rows is
        low = 0.78 if width == "column" else 0.62
        height = top + sum(deep) + low
        figure = Figure(figsize=(inches, height))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((left / inches, low / height, 1 - (left + 0.1) / inches, sum(deep) / height))
        blue, orange, green = (seaborn.color_palette("colorblind")[place] for place in (0, 3, 2))
        for place, own, row in zip(centres, deep, rows, strict=True):
            if row.chance is not None:
                axes.add_patch(
                    Rectangle(
                        (row.chance[0], place - 0.4 * own), row.chance[1] - row.chance[0], 0.8 * own, fc=PALE, lw=0
                    )
                )
            for rate, share in row.shares:
                axes.plot(rate, place, "o", color=blue, alpha=0.25, ms=2 + 10 * math.sqrt(share), mew=0, zorder=1)
            if row.worst.low is not None and row.worst.high is not None:
                axes.plot([row.worst.low, row.worst.high], [place + BESIDE] * 2, color=orange, lw=1.4, zorder=2)
            marks = (
                (row.median, "o", blue, -BESIDE),
                (row.rare, "D", green, 0.0),
                (row.worst.value, "s", orange, BESIDE),
            )
            for value, marker, colour, beside in marks:
                if value is not None:
                    axes.plot(
                        value,
                        place + beside,
                        marker,
                        color=colour,
                        ms=3.8,
                        mec="white",
                        mew=0.5,
                        zorder=3,
                        clip_on=False,
                    )
        axes.set_yticks(centres, names)
        axes.set_ylim(sum(deep), 0)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel("share of keys under which Eve finds the person")
        axes.xaxis.label.set_x((inches / 2 - left) / (inches - left - 0.1))
        seaborn.despine(ax=axes, left=True)
        axes.tick_params(axis="y", length=0)
        handles = [Line2D([], [], ls="", marker=marker, color=colour, ms=4, label=name) for marker, colour, name in (
            ("o", blue, "median person"), ("D", green, "person at 95 %"))]  # fmt: skip
        handles.append(
            Line2D([], [], marker="s", color=orange, ms=4, lw=1.4, label="worst person, beyond luck, 95 % bounds")
        )
        if any(row.chance for row in rows):
            handles.append(Rectangle((0, 0), 1, 1, fc=BAND, label="worst person by chance"))  # type: ignore[arg-type]
        if any(row.shares for row in rows):
            handles.append(
                Line2D([], [], ls="", marker="o", color=blue, alpha=0.25, ms=7, mew=0, label="share of people")
            )
        figure.legend(handles=handles, loc="lower center", ncols=2 if width == "column" else 5, frameon=False,
                      columnspacing=1.0, handletextpad=0.4, fontsize=TINY if width == "column" else SMALL)  # fmt: skip
        _write_title(figure, title)
        return _bytes(figure, form)


def _style() -> Any:
    style: dict[Any, Any] = seaborn.axes_style("ticks")
    return matplotlib.rc_context(style | STYLE)


def _bytes(figure: Figure, form: Form) -> bytes:
    """The figure's file; the same figure has the same bytes."""
    stream = io.BytesIO()
    figure.savefig(stream, format=form, dpi=DOTS, metadata=METADATA[form])
    return stream.getvalue()
