"""Utility against another figure, as an SVG without scripts.

An SVG within the page: its colours are those of the page's style sheet, light and dark, and every mark leads to the
page of its row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from pydantic import JsonValue

from bench.results.records import ScoreRecord
from leaderboard.entries import number
from leaderboard.lines import Line
from leaderboard.names import parameters_text

LETTER, LINE = 6.1, 14.0  # about how much room a label's letter and line take
SPOTS = ((7, -5), (7, 15), (-7, -5), (-7, 15), (9, 4), (-9, 4), (7, -19), (7, 29), (-7, -19), (-7, 29))
SHAPES = {"broken": "cross", "dented": "diamond", "members told": "diamond", "not broken": "ring",
          "members not told": "ring"}  # fmt: skip


@dataclass(frozen=True)
class Plane:
    """The two axes of a picture: utility up, another figure across.

    Args:
        across, up: Metrics.
        references: Whether reference methods are drawn, which lie far from all others in some figures.
    """

    across: str
    up: str = "utility-auc"
    references: bool = True


PLANES = (
    Plane("guesswork"),
    Plane("reid-auc"),
    Plane("person-risk"),
    Plane("membership-auc", "linear-probe-auc"),
    Plane("nearest-neighbour-distance", "linear-probe-auc", references=False),
)
LOGARITHMIC = frozenset({"guesswork"})


@dataclass(frozen=True)
class Point:
    """One row of the board in the plane."""

    line: Line
    label: str
    said: str
    across: ScoreRecord
    up: ScoreRecord
    certified: bool


def points(lines: Sequence[Line], shown: Plane) -> list[Point]:
    """The rows with both figures; none whose privacy figure is not rated."""
    found = []
    for line in lines:
        across, up = (line.row.entries.get(name) for name in (shown.across, shown.up))
        if across is None or up is None or across.score is None or up.score is None or across.unrated:
            continue
        if shown.references or not line.reference:
            label = f"{line.row.method} {parameters_text(_unusual(line, lines))}".strip()
            said = f"{label}: {line.standing.word}; {up.text} ({up.interval}) against {across.text} ({across.interval})"
            found.append(Point(line, label, said, across.score, up.score, across.certified))
    return found


def _unusual(line: Line, lines: Sequence[Line]) -> Mapping[str, JsonValue]:
    """Parameters that distinguish a row from most of its method."""
    twins = [other.row.parameters for other in lines if other.row.method == line.row.method]

    def usual(name: str, value: JsonValue) -> bool:
        same = sum(twin.get(name) == value for twin in twins)
        return same == len(twins) or 2 * same > len(twins)

    return {name: value for name, value in sorted(line.row.parameters.items()) if not usual(name, value)}


def front(shown: Sequence[Point]) -> list[Point]:
    """The Pareto front of the points.

    References are apart, and so are figures that no certified attack gave, for they support no claim, and rows that
    only their author measured.
    """
    told = [point for point in shown if not point.line.reference and point.line.row.vouched]
    mine = [point for point in told if point.certified]
    kept: list[Point] = []
    for point in sorted(mine, key=lambda point: (-_good(point.up), -_good(point.across), point.line.id)):
        if not kept or _good(point.across) > _good(kept[-1].across):
            kept.append(point)
    return kept


def scatter(lines: Sequence[Line], shown: Plane, root: str) -> Markup | None:
    """The picture; None without points.

    Args:
        lines: Rows of one data set, size and seed.
        shown: The two figures.
        root: What leads from the page to the site's root.
    """
    drawn = points(lines, shown)
    if not drawn:
        return None
    columns = [drawn[0].line.row.entries[name].column for name in (shown.across, shown.up)]
    x = axis([point.across for point in drawn], LEFT, WIDTH - RIGHT, log=shown.across in LOGARITHMIC)
    y = axis([point.up for point in drawn], HEIGHT - BOTTOM, TOP, log=False)
    parts = [frame(x, y), _chance(drawn, x)]
    ends = [(x.at(point.across.value), y.at(point.up.value)) for point in front(drawn)]
    if len(ends) > 1:
        parts.append(f'<polyline class="front" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in ends)}"/>')
    parts += [_mark(point, x, y, root) for point in drawn]
    parts += _labels(drawn, x, y)
    attacked = " (strongest attack)" * any(point.line.row.entries[shown.across].attacked for point in drawn)
    across, up = escape(columns[0].title), escape(columns[1].title)
    scale = ", log scale" * x.log
    parts.append(titles(f"{across}{attacked}{scale}; better to the right →", f"{up}; better upwards →"))
    told = f"{up} against {across}, {len(drawn)} rows; the figures are in the table"
    return Markup(f'<svg class="scatter" viewBox="0 0 {WIDTH} {HEIGHT}" role="group" aria-label="{told}">'
                  f'{"".join(parts)}</svg>')  # fmt: skip


def _good(score: ScoreRecord) -> float:
    return score.value if score.better == "higher" else -score.value


def _chance(drawn: Sequence[Point], x: Axis) -> str:
    """A band over the 95 % intervals of chance."""
    lows = [point.across.null_low for point in drawn if point.across.null_low is not None]
    highs = [point.across.null_high for point in drawn if point.across.null_high is not None]
    if not lows or not highs:
        return ""
    a, b = sorted((x.at(min(lows)), x.at(max(highs))))
    return (
        f'<rect class="chance" x="{a:.1f}" y="{TOP}" width="{b - a:.1f}" height="{HEIGHT - BOTTOM - TOP}"/>'
        f'<text class="chance" x="{(a + b) / 2:.1f}" y="{TOP + 12}" text-anchor="middle">chance</text>'
    )


def _mark(point: Point, x: Axis, y: Axis, root: str) -> str:
    a, b = x.at(point.across.value), y.at(point.up.value)
    word = point.line.standing.word
    shape = "square" if point.line.reference else SHAPES.get(word, "square")
    drawn = {
        "cross": f'<path d="M{a - 5:.1f} {b - 5:.1f}l10 10m0 -10l-10 10"/>',
        "diamond": f'<path d="M{a:.1f} {b - 6:.1f}l6 6l-6 6l-6 -6z"/>',
        "ring": f'<circle cx="{a:.1f}" cy="{b:.1f}" r="5"/>',
        "square": f'<path d="M{a - 4:.1f} {b - 4:.1f}h8v8h-8z"/>',
    }[shape]
    kind = "reference" if point.line.reference else word.replace(" ", "-")
    return (
        f'<a class="mark {kind}" href="{root}cells/{point.line.id}.html"><title>{escape(point.said)}</title>'
        f"{_whiskers(point, x, y)}{drawn}</a>"
    )


def _whiskers(point: Point, x: Axis, y: Axis) -> str:
    a, b = x.at(point.across.value), y.at(point.up.value)
    path = ""
    if point.across.low is not None and point.across.high is not None:
        path += f"M{x.at(point.across.low):.1f} {b:.1f}H{x.at(point.across.high):.1f}"
    if point.up.low is not None and point.up.high is not None:
        path += f"M{a:.1f} {y.at(point.up.low):.1f}V{y.at(point.up.high):.1f}"
    return f'<path class="whisker" d="{path}"/>' if path else ""


def _labels(drawn: Sequence[Point], x: Axis, y: Axis) -> list[str]:
    """Names beside the marks, each in its first free place."""
    places = [(x.at(point.across.value), y.at(point.up.value)) for point in drawn]
    taken = [(a - 6, b - 6, a + 6, b + 6) for a, b in places]
    found = []
    for (a, b), point in sorted(zip(places, drawn, strict=True), key=lambda one: (one[0][1], one[1].label)):
        label = shortened(point.label)
        wide = LETTER * len(label)
        for dx, dy in SPOTS:
            left = a + dx - (wide if dx < 0 else wide / 2 if dx == 0 else 0)
            box = (left, b + dy - LINE + 3, left + wide, b + dy + 3)
            inside = box[0] >= LEFT and box[2] <= WIDTH - RIGHT and box[1] >= TOP and box[3] <= HEIGHT - BOTTOM
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                found.append(f'<text class="name" x="{left:.1f}" y="{b + dy:.1f}">{escape(label)}</text>')
                break
    return found


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 18, 58
LONGEST = 30


def frame(x: Axis, y: Axis) -> str:
    """Both axes with their ticks, as SVG."""
    floor, left = HEIGHT - BOTTOM, LEFT
    parts = [f'<path class="axis" d="M{left} {TOP}V{floor}H{WIDTH - RIGHT}"/>']
    for value in x.ticks:
        at = f"{x.at(value):.1f}"
        parts.append(f'<path class="grid" d="M{at} {TOP}V{floor}"/>')
        parts.append(f'<text x="{at}" y="{floor + 18}" text-anchor="middle">{x.text(value)}</text>')
    for value in y.ticks:
        height = y.at(value)
        parts.append(f'<path class="grid" d="M{left} {height:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{left - 8}" y="{height + 4:.1f}" text-anchor="end">{y.text(value)}</text>')
    return "".join(parts)


def titles(across: str, up: str) -> str:
    """The axis titles as SVG; the caller escapes both texts."""
    return (
        f'<text class="title" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{across}</text>'
        f'<text class="title" transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{up}</text>'
    )


def shortened(label: str, length: int = LONGEST) -> str:
    """One line of at most that many characters."""
    line = " ".join(label.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
TICKS = 6
MARGIN = 0.06
LEAST, MOST = 1e-9, 1e100  # what is drawn: smaller ones of a logarithmic axis and larger ones stand at its end


@dataclass(frozen=True)
class Axis:
    """The place of figures on an axis.

    Args:
        low, high: The range of figures, on the logarithmic axis their logarithms.
        start, end: Where the worst and the best end of the range stand, in units of the picture.
        ticks: Round figures within it.
        log: Whether it is logarithmic.
        flipped: Whether less is better, so that less stands at `end`.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    log: bool
    flipped: bool

    def at(self, value: float) -> float:
        """The place of a figure, clamped to the range."""
        share = (min(max(_scaled(value, self.log), self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + (1 - share if self.flipped else share) * (self.end - self.start)

    def text(self, value: float) -> str:
        """A tick in print."""
        if self.log or abs(value) >= 1000:
            return number(value, None if value < 1 or value >= 1e6 else 0)
        return f"{value:.3f}".rstrip("0").rstrip(".").replace("-", "−")


def axis(scores: Sequence[ScoreRecord], start: float, end: float, *, log: bool) -> Axis:
    """An axis that holds the figures, their intervals and what chance gives."""
    ends = [
        value
        for score in scores
        for value in (score.value, score.low, score.high, score.null_low, score.null_high)
        if value is not None
    ]
    scaled = [_scaled(value, log) for value in ends]
    low, high = min(scaled), max(scaled)
    room = MARGIN * (high - low) or 0.05 * abs(low) or 0.5
    low, high = low - room, high + room
    return Axis(low, high, start, end, _ticks(low, high, log), log, scores[0].better == "lower")


def logarithmic(values: Sequence[float], start: float, end: float) -> Axis:
    """A logarithmic axis that holds the figures, the least at its start."""
    scaled = [_scaled(value, True) for value in values]
    low, high = min(scaled), max(scaled)
    room = MARGIN * (high - low) or 0.5
    return Axis(low - room, high + room, start, end, _ticks(low - room, high + room, True), True, False)


def _scaled(value: float, log: bool) -> float:
    drawn = min(max(value, LEAST if log else -MOST), MOST)
    return math.log10(drawn) if log else drawn


def _ticks(low: float, high: float, log: bool) -> tuple[float, ...]:
    if log:
        powers = range(math.ceil(low), math.floor(high) + 1)
        leaves = (1.0,) if len(powers) > 2 else (1.0, 2.0, 5.0)
        values = [leaf * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for leaf in leaves]
        return tuple(value for value in values if low <= math.log10(value) <= high)
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in STEPS if each * power >= rough)
    first = math.ceil(low / step)
    return tuple(round(step * number, 12) for number in range(first, math.floor(high / step) + 1))
