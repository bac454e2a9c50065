"""Utility against privacy, and against the budget ε, as SVG without scripts.

Colours are those of the page's style sheet, light and dark: a method has one, and the shape of a mark says its verdict.
Every mark links to the page of its row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from pydantic import JsonValue

from bench.results.records import ScoreRecord
from bench.types import LearningCurve
from leaderboard.board import Row
from leaderboard.bounds import BY_IMAGE, BY_PERSON, upward
from leaderboard.entries import Column, interval, number, short
from leaderboard.names import parameters_text, shortened
from leaderboard.panel import attack_key
from leaderboard.row_schema import HASH, BoardRow, Figure, readable

LEFT, RIGHT, TOP, BOTTOM = 62, 18, 18, 58
LETTER, LINE = 6.9, 14.0  # about the width of a label's letter and the height of its line
NEAR = ((9, 4), (7, -5), (7, 15), (-9, 4), (-7, -5), (-7, 15))
FAR = tuple(
    (radius * math.cos(math.radians(angle)), radius * math.sin(math.radians(angle)) + 4)
    for radius in (24, 38, 54, 72, 92, 114, 138)
    for angle in (0, 20, -20, 40, -40, 60, -60, 180, 160, -160, 140, -140, 90, -90)
)
"""Places of a label beside its mark, in the order of trying; to those of `FAR` a line leads."""
CROWDED = 60.0, LINE
"""Marks no farther apart, across and up, have their labels in one column."""
ASIDE = (26.0, 40.0, 56.0, 74.0, 94.0, 116.0)
"""Distances of a column from the outermost of its marks, in the order of trying."""
FAMILIES = {
    "keyed encoding": ("syfer", "syfer-random", "dauntless", "neuracrypt", "instahide", "etc-blocks", "random-layers"),
    "noise": ("cadp", "dp-glow", "dp-image", "dp-simple"),
    "blurred or deformed images": ("blur", "mosaic", "dp-pix", "prichexy-net", "privacy-net"),
    "averages or new images": ("k-same", "cvae", "dp-merf", "distilled", "private-evolution"),
    "a model in place of images": ("dp-sgd",),
    "other": (),
}
"""Methods by what they do to images, one colour a family. It stands here, for a word more in a method's own code would
call for its rows to be measured again. The last is of all others."""
FAMILY_OF = {method: number for number, methods in enumerate(FAMILIES.values()) for method in methods}
BUDGET_FIRST = ("epsilon", "scale", "steps")
"""Parameters that tell a method's rows apart best; a label begins with one of these."""
SHAPES = {"broken": "cross", "leaks": "diamond", "membership leaks": "half", "no leak above a bound": "ring",
          "no membership leak above a bound": "double"}  # fmt: skip
MEMBERS = "membership-auc"
LOGARITHMIC = frozenset({"guesswork"})
BUDGET_METRICS = ("transfer-accuracy", "utility-auc", "detection-auc")  # the first that the rows have is drawn
BUDGETS = ("epsilon", "epsilon_per_pixel", "scale")


@dataclass(frozen=True)
class Canvas:
    """The size of a picture.

    Args:
        width, height: In its own units.
        longest: Letters of a label.
    """

    width: int = 760
    height: int = 440
    longest: int = 24

    @property
    def right(self) -> int:
        """The right edge of the frame."""
        return self.width - RIGHT

    @property
    def floor(self) -> int:
        """The lower edge of the frame."""
        return self.height - BOTTOM


WIDE, PHONE = Canvas(), Canvas(390, 460, 21)


@dataclass(frozen=True)
class Plane:
    """The two metrics of a picture.

    Args:
        references: Whether reference methods are drawn.
        upper: Whether a row stands at the upper end of its figure across, or at its verdict's bound if that is more.
        instead: The metric by which a row without a figure across stands, in the same unit; empty for none.
        goal: Figures across and up from which on a row has what is wanted: that corner is marked. None for no corner.
    """

    across: str
    up: str = "utility-auc"
    references: bool = True
    upper: bool = False
    instead: str = ""
    goal: tuple[float, float] | None = None


PLANES = (
    Plane("guesswork"),
    Plane("reid-auc"),
    Plane("person-risk"),
    Plane(MEMBERS, "linear-probe-auc"),
)


@dataclass(frozen=True)
class Point:
    """One row of the board in the plane.

    Args:
        metric: That of the figure across.
    """

    row: BoardRow
    label: str
    metric: str
    across: Figure
    up: Figure


def points(rows: Sequence[BoardRow], plane: Plane) -> list[Point]:
    """The rows with both figures; none whose privacy figure is not rated."""
    pairs = ((row, standing_by(row, plane.across, plane.instead)) for row in rows)
    placed = ((row, name, _across(row, plane, name), row.figures.get(plane.up)) for row, name in pairs)
    return [
        Point(row, f"{row.plugin} {_told(_unusual(row, rows))}".strip(), name, across, up)
        for row, name, across, up in placed
        if across is not None and across.value is not None and up is not None and up.value is not None
        if not across.unrated and (plane.references or not row.reference)
    ]


def standing_by(row: BoardRow, across: str, instead: str) -> str:
    """Name of `across`, or of `instead` where that does not apply.

    A trained model and samples of a generator have no row for each image: whether pairs were tried or not, they stand
    by their members.
    """
    own, other = row.figures.get(across), row.figures.get(instead)
    apart = row.kind in ("a trained model", "samples of a generator")
    none = (own is None or own.value is None) and (apart or (own is not None and own.status == "not-applicable"))
    return instead if none and other is not None and other.value is not None else across


def _across(row: BoardRow, plane: Plane, metric: str) -> Figure | None:
    """A row's figure across, or its upper end."""
    figure = row.figures.get(metric)
    if not plane.upper or figure is None or figure.value is None:
        return figure
    high = figure.upper or figure.value
    if row.bound is not None and row.of_members == (metric == MEMBERS):
        high = max(high, row.bound)  # the verdict's, over all attacks that count
    return figure.model_copy(update={"value": high, "high": high, "low": figure.low})


def _unusual(row: BoardRow, rows: Sequence[BoardRow]) -> Mapping[str, JsonValue]:
    """Parameters that distinguish a row from most of its method."""
    twins = [other.parameters for other in rows if other.plugin == row.plugin]

    def usual(name: str, value: JsonValue) -> bool:
        same = sum(twin.get(name) == value for twin in twins)
        return same == len(twins) or 2 * same > len(twins)

    found = {name: value for name, value in row.parameters.items() if not usual(name, value)}
    names = sorted(found, key=lambda name: (name not in BUDGET_FIRST, name))
    if any(name.endswith(HASH) for name in names):
        mine = readable(row.plugin, row.parameters)
        if not any(readable(row.plugin, twin) == mine and twin != row.parameters for twin in twins):
            names = [name for name in names if not name.endswith(HASH)]
    return {name: found[name] for name in names}


def _told(parameters: Mapping[str, JsonValue]) -> str:
    """Parameters in their own order."""
    return ",".join(parameters_text({name: value}) for name, value in parameters.items())


def family(row: BoardRow) -> int:
    """The number of a row's family."""
    return FAMILY_OF.get(row.plugin, len(FAMILIES) - 1)


def families(rows: Sequence[BoardRow]) -> list[tuple[int, str]]:
    """Number and name of each family that the ranked rows have."""
    names, found = list(FAMILIES), sorted({family(row) for row in rows if not row.reference})
    return [(number, names[number]) for number in found]


def front(some: Sequence[Point], across: Column, up: Column) -> list[Point]:
    """The Pareto front of the points.

    Left out are references, figures of attacks that are not certified, and rows that only their author measured.
    """
    mine = [one for one in some if not one.row.reference and one.row.trusted and one.across.certified]
    edge: list[Point] = []
    for one in sorted(mine, key=lambda one: (-_good(one.up, up), -_good(one.across, across), one.row.id)):
        if not edge or _good(one.across, across) > _good(edge[-1].across, across):
            edge.append(one)
    return edge


def _good(figure: Figure, column: Column) -> float:
    assert figure.value is not None
    return figure.value if column.better == "higher" else -figure.value


def scatter(
    rows: Sequence[BoardRow], plane: Plane, named: Mapping[str, Column], root: str, canvas: Canvas = WIDE
) -> Markup | None:
    """The picture; None without points.

    Args:
        rows: Of one data set, size and seed.
        plane: The two figures.
        named: The metrics by name.
        root: The path from the page to the site's root.
        canvas: The size.
    """
    some = points(rows, plane)
    if not some:
        return None
    across, up = named[plane.across], named[plane.up]
    goal = plane.goal or (None, None)
    x = axis([one.across for one in some], LEFT, canvas.right, log=plane.across in LOGARITHMIC, better=across.better,
             more=goal[:1])  # fmt: skip
    y = axis([one.up for one in some], canvas.floor, TOP, log=False, better=up.better, more=goal[1:])
    places = [(x.at(one.across.value), y.at(one.up.value)) for one in some]
    parts, taken = [frame(x, y, canvas)], []
    chance = _chance(some, x, canvas)
    marks = [(a - 6, b - 6, a + 6, b + 6) for a, b in places]
    lines = [box for one, place in zip(some, places, strict=True) for box in _intervals(one, place, x, y)]
    for svg, box in (_corner(plane.goal, x, y, canvas, [*marks, *chance[1]], lines), chance):
        parts.append(svg)
        taken += box
    for metric in sorted({one.metric for one in some}):  # no front across two quantities
        ends = [places[some.index(one)] for one in front([one for one in some if one.metric == metric], across, up)]
        if len(ends) > 1:
            parts.append(f'<polyline class="front" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in ends)}"/>')
    labels = _labels(some, places, marks, taken, canvas)
    parts += [_mark(one, place, x, y, _tooltip(one, named[one.metric], up), root)
              for one, place in zip(some, places, strict=True)]  # fmt: skip
    parts += labels
    attacked = " (strongest attack)" * any(one.across.attacked for one in some)
    what = f"{escape(across.title)} at most, by the attacks" if plane.upper else f"{escape(across.title)}{attacked}"
    if any(one.metric == plane.instead for one in some):
        what = f"{across.unit} at most, by the attacks"
    better = "; better to the right →" if canvas is WIDE or len(what) < LONGEST else " →"
    parts.append(titles(f"{what}{', log scale' * x.log}{better}", f"{escape(up.title)}; better upwards →", canvas))
    summary = f"{escape(up.title)} against {escape(across.title)}, {len(some)} rows; the figures are in the table"
    return _svg(parts, "group", summary, canvas)


LONGEST = 30  # letters of an axis title beside which its direction has room on a phone


def _svg(parts: Iterable[str], role: str, summary: str, canvas: Canvas = WIDE) -> Markup:
    kind = "scatter" if canvas is WIDE else "scatter phone"
    opening = f'<svg class="{kind}" viewBox="0 0 {canvas.width} {canvas.height}" role="{role}" aria-label="{summary}">'
    return Markup(f"{opening}{''.join(parts)}</svg>")


Box = tuple[float, float, float, float]
"""Left, upper, right and lower edge."""


def _corner(
    goal: tuple[float, float] | None, x: Axis, y: Axis, canvas: Canvas, marks: Sequence[Box], lines: Sequence[Box]
) -> tuple[str, list[Box]]:
    """The corner that is wanted, and the place of its words.

    They stand in the corner, or below it with an arrow, where they lie on the fewest `marks`, then intervals (`lines`).
    """
    if goal is None:
        return "", []
    a, b, words = x.at(goal[0]), y.at(goal[1]), (f"kept, AUC ≤ {upward(goal[0])};", "only rings qualify")
    width, right = max(map(len, words)) * LETTER, canvas.right - 6
    ends = [right] + [a + 6 + width] * (a + 6 + width < right)
    inside = [first for first in (TOP + 28, b - 8 - LINE) if first - 12 >= TOP and first + 4 + LINE <= b]
    firsts = inside + [b + 16] * (b + 20 + LINE < canvas.floor) or [TOP + 28]
    boxes = [(end - width, first - 12, end, first + 4 + LINE) for end in ends for first in firsts]

    def cost(box: Box) -> tuple[int, ...]:
        return tuple(sum(_overlap(box, other) for other in drawn) for drawn in (marks, lines))

    box = min(boxes, key=cost)
    words = ("↑ " * (box[1] >= b) + words[0], words[1])
    texts = "".join(f'<text class="goal" x="{box[2]:.1f}" y="{box[1] + 12 + place * LINE:.0f}" text-anchor="end">'
                    f"{text}</text>" for place, text in enumerate(words))  # fmt: skip
    rect = f'<rect class="goal" x="{a:.1f}" y="{TOP}" width="{canvas.right - a:.1f}" height="{b - TOP:.1f}"/>'
    return rect + texts, [box]


def _intervals(one: Point, place: tuple[float, float], x: Axis, y: Axis) -> list[Box]:
    """The places of a mark's intervals."""
    (a, b), boxes = place, []
    for scale, figure in ((x, one.across), (y, one.up)):
        if figure.low is not None and figure.high is not None:
            near, far = sorted((scale.at(figure.low), scale.at(figure.high)))
            boxes.append((near, b - 1, far, b + 1) if scale is x else (a - 1, near, a + 1, far))
    return boxes


def _chance(some: Sequence[Point], x: Axis, canvas: Canvas) -> tuple[str, list[Box]]:
    """A band over the intervals of chance, and its word's place."""
    lows = [one.across.null_low for one in some if one.across.null_low is not None]
    highs = [one.across.null_high for one in some if one.across.null_high is not None]
    if not lows or not highs:
        return "", []
    a, b = sorted((x.at(min(lows)), x.at(max(highs))))
    middle = min((a + b) / 2, canvas.right - 22)
    return (
        f'<rect class="chance" x="{a:.1f}" y="{TOP}" width="{b - a:.1f}" height="{canvas.floor - TOP}"/>'
        f'<text class="chance" x="{middle:.1f}" y="{TOP + 12}" text-anchor="middle">chance</text>',
        [(middle - 22, TOP, middle + 22, TOP + 14)],
    )


def _tooltip(one: Point, across: Column, up: Column) -> str:
    texts = (
        f"{number(figure.value or 0.0, column.digits)} ({interval(figure.low, figure.high, column.digits)})"
        for figure, column in ((one.up, up), (one.across, across))
    )
    return f"{one.label}: {one.row.label}; {' against '.join(texts)}"


def _mark(one: Point, place: tuple[float, float], x: Axis, y: Axis, tooltip: str, root: str) -> str:
    (a, b), row = place, one.row
    mark = {
        "cross": f'<path d="M{a - 5:.1f} {b - 5:.1f}l10 10m0 -10l-10 10"/>',
        "diamond": f'<path d="M{a:.1f} {b - 6:.1f}l6 6l-6 6l-6 -6z"/>',
        "ring": f'<circle cx="{a:.1f}" cy="{b:.1f}" r="5"/>',
        "half": f'<path d="M{a:.1f} {b - 6:.1f}l6 10h-12z"/>',
        "double": f'<circle cx="{a:.1f}" cy="{b:.1f}" r="5"/><circle cx="{a:.1f}" cy="{b:.1f}" r="2"/>',
        "square": f'<path d="M{a - 4:.1f} {b - 4:.1f}h8v8h-8z"/>',
    }["square" if row.reference else SHAPES.get(row.verdict, "square")]
    whiskers = ""
    if one.across.low is not None and one.across.high is not None:
        whiskers += f"M{x.at(one.across.low):.1f} {b:.1f}H{x.at(one.across.high):.1f}"
    if one.up.low is not None and one.up.high is not None:
        whiskers += f"M{a:.1f} {y.at(one.up.low):.1f}V{y.at(one.up.high):.1f}"
    kind = "reference" if row.reference else f"family-{family(row)}"
    line = f'<path class="whisker" d="{whiskers}"/>' if whiskers else ""
    title = f"<title>{escape(tooltip)}</title>"
    return f'<a class="mark {kind}" href="{root}cells/{row.id}.html">{title}{line}{mark}</a>'


@dataclass(frozen=True)
class _Label:
    """A name in its place, perhaps with a line to its mark.

    Args:
        x, y: The end of its text that is next to the mark, on the base line.
        ends: Whether the text ends there, else it begins there.
        start: The mark's place; None without a line.
    """

    text: str
    x: float
    y: float
    ends: bool = False
    start: tuple[float, float] | None = None

    @property
    def box(self) -> Box:
        left = self.x - LETTER * len(self.text) * self.ends
        return left, self.y - LINE + 3, left + LETTER * len(self.text), self.y + 3

    @property
    def line(self) -> Box | None:
        """The line to it: start and end."""
        return None if self.start is None else (*self.start, self.x + (2 if self.ends else -2), self.y - 4)

    @property
    def svg(self) -> str:
        line = "" if self.line is None else '<path class="leader" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>'.format(*self.line)
        anchor = ' text-anchor="end"' if self.ends else ""
        return f'{line}<text class="name" x="{self.x:.1f}" y="{self.y:.1f}"{anchor}>{escape(self.text)}</text>'


def _labels(
    some: Sequence[Point], places: Sequence[tuple[float, float]], marks: Sequence[Box], taken: Sequence[Box],
    canvas: Canvas,
) -> list[str]:  # fmt: skip
    """Names of the marks, where they can be read.

    Those of crowded marks stand in a column, others in the first free place beside theirs.
    """
    firsts = [one.label.split(",")[0] for one in some]
    names = [shortened(first if firsts.count(first) == 1 else one.label, canvas.longest)
             for first, one in zip(firsts, some, strict=True)]  # fmt: skip
    boxes = [*taken, *marks]
    found: list[_Label] = []

    def free(label: _Label) -> bool:
        box, line = label.box, label.line
        inside = box[0] >= LEFT and box[2] <= canvas.right and box[1] >= TOP and box[3] <= canvas.floor
        lines = [other.line for other in found if other.line is not None]
        return (
            inside
            and not any(_overlap(box, other) for other in [*boxes, *(other.box for other in found)])
            and not any(_crosses(other, box) for other in lines)
            and not (line is not None and any(_crosses(line, other.box) for other in found))
        )

    left: list[int] = []
    for group in _crowds(places):
        columns = _columns(group, names, places, canvas) if len(group) > 2 else ()
        column = next((labels for labels in columns if all(map(free, labels))), None)
        if column is None:
            left += group
        else:
            found += column
    for index in sorted(left, key=lambda index: (places[index][1], names[index])):
        (a, b), name = places[index], names[index]
        tries = [_Label(name, a + dx, b + dy, dx < 0, (a, b) if place >= len(NEAR) else None)
                 for place, (dx, dy) in enumerate((*NEAR, *FAR))]  # fmt: skip
        others = [mark for mark, place in zip(marks, places, strict=True) if place != (a, b)]
        tries.sort(key=lambda label: label.line is not None and any(_crosses(label.line, one) for one in others))
        if (label := next(filter(free, tries), None)) is not None:  # a line over another mark is the last resort
            found.append(label)
    return [label.svg for label in found]


def _crowds(places: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Marks in groups of those near each other."""
    groups: list[list[int]] = []
    for index in sorted(range(len(places)), key=lambda index: places[index]):
        a, b = places[index]
        near = [group for group in groups
                if any(abs(a - places[other][0]) <= CROWDED[0] and abs(b - places[other][1]) <= CROWDED[1]
                       for other in group)]  # fmt: skip
        groups = [group for group in groups if group not in near]
        groups.append([index, *(other for group in near for other in group)])
    return sorted(groups, key=lambda group: -len(group))


def _columns(
    group: Sequence[int], names: Sequence[str], places: Sequence[tuple[float, float]], canvas: Canvas
) -> Iterator[list[_Label]]:
    """Columns of a group's names, beside its marks from above."""
    order = sorted(group, key=lambda index: (places[index][1], -places[index][0]))
    middle = sum(places[index][1] for index in order) / len(order)
    high = LINE * len(order)
    top = min(max(TOP, middle - high / 2), canvas.floor - high)
    right, left = (pick(places[index][0] for index in order) for pick in (max, min))
    for shift in (0.0, *(sign * LINE * step for step in range(1, 12) for sign in (-1, 1))):
        for ends, edge in ((False, right), (True, left)):
            for aside in ASIDE:
                x = edge - aside if ends else edge + aside
                yield [_Label(names[index], x, top + shift + LINE * (place + 1) - 3, ends, places[index])
                       for place, index in enumerate(order)]  # fmt: skip


def _crosses(line: Box, box: Box) -> bool:
    """True if a line meets a box (Liang and Barsky 1984)."""
    x, y, across, down = line[0], line[1], line[2] - line[0], line[3] - line[1]
    first, last = 0.0, 1.0
    for step, room in ((-across, x - box[0]), (across, box[2] - x), (-down, y - box[1]), (down, box[3] - y)):
        if step == 0:
            if room < 0:
                return False
        elif step < 0:
            first = max(first, room / step)
        else:
            last = min(last, room / step)
    return first <= last


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


@dataclass(frozen=True)
class Curve:
    """One method under several budgets; its points by ascending derived ε."""

    label: str
    budgets: tuple[float, ...]
    figures: tuple[Figure, ...]


def curves(rows: Sequence[BoardRow], metric: str) -> tuple[list[Curve], dict[str, Figure]]:
    """Methods with figures at several finite budgets, and references by name.

    The budget is the derived ε of a whole released row, so that methods whose papers count differently stand on one
    axis; claims about single pixels do not compare with those and are left out.
    """
    families: dict[tuple[str, str], list[tuple[float, BoardRow]]] = {}
    levels: dict[str, Figure] = {}
    for row in rows:
        if metric not in row.figures or row.figures[metric].value is None:
            continue
        if row.claim is not None and row.claim.derived is not None and row.claim.whole:
            fixed = {name: value for name, value in row.parameters.items() if name not in BUDGETS}
            key = json.dumps([fixed, row.preset, row.seed], sort_keys=True)
            families.setdefault((row.plugin, key), []).append((row.claim.derived, row))
        elif row.reference:
            levels.setdefault(row.plugin, row.figures[metric])
    found = []
    for members in families.values():
        if len(members) > 1:
            members.sort(key=lambda one: one[0])
            figures = tuple(row.figures[metric] for _, row in members)
            found.append(Curve(_curve_label(members[0][1], rows), tuple(budget for budget, _ in members), figures))
    return sorted(found, key=lambda curve: curve.label), levels


def _curve_label(row: BoardRow, rows: Sequence[BoardRow]) -> str:
    """A row's method with what tells its rows apart."""
    twins = [other for other in rows if other.plugin == row.plugin]
    texts = [f"{name}={value}" for name, value in sorted(row.parameters.items())
             if name not in BUDGETS and any(other.parameters.get(name) != value for other in twins)]  # fmt: skip
    texts += [row.preset] * any(other.preset != row.preset for other in twins)
    texts += [f"seed {row.seed}"] * any(other.seed != row.seed for other in twins)
    return " ".join([row.plugin, *texts])


def budget_plot(rows: Sequence[BoardRow], named: Mapping[str, Column]) -> Markup | None:
    """Utility against derived ε by method; None without two budgets."""
    by_metric = {name: curves(rows, name) for name in BUDGET_METRICS}
    metric = next((name for name, (some, _) in by_metric.items() if some), None)
    if metric is None:
        return None
    some, levels = by_metric[metric]
    figures = [figure for curve in some for figure in curve.figures]
    y = axis([*figures, *levels.values()], WIDE.floor, TOP, log=False, better=named[metric].better)
    x = _axis([budget for curve in some for budget in curve.budgets], LEFT, WIDE.right, log=True, flipped=False)
    parts = [frame(x, y)]
    for name, figure in sorted(levels.items()):
        height = y.at(figure.value)
        parts.append(f'<path class="level" d="M{LEFT} {height:.1f}H{WIDE.right}"/>')
        parts.append(
            f'<text class="name" x="{WIDE.right - 4}" y="{height - 4:.1f}" text-anchor="end">{escape(name)}</text>'
        )
    for index, curve in enumerate(some):
        places = [(x.at(budget), y.at(one.value)) for budget, one in zip(curve.budgets, curve.figures, strict=True)]
        parts.append(f'<g class="curve dash-{index % 4}"><title>{escape(curve.label)}</title>')
        parts.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in places)}"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4"/>' for a, b in places]
        a, b = places[0]
        parts.append(f'<text x="{a:.1f}" y="{b - 9:.1f}">{escape(shortened(curve.label, WIDE.longest))}</text></g>')
    title = escape(named[metric].title)
    parts.append(titles("derived ε of one released row, log scale; better to the left ←", f"{title}; better upwards →"))
    return _svg(parts, "img", f"{title} against the derived privacy budget, {len(some)} methods")


CURVE_WIDTH, CURVE_HEIGHT = 240, 60
LEAST_RANGE = 0.05


def learning_plot(curve: LearningCurve) -> Markup:
    """One training's held-out figure by steps.

    Its height is the range of the figure, or `LEAST_RANGE` of its size: noise at chance shows as a level line.
    """
    steps, values = zip(*curve.points, strict=True)
    low, high, last = min(values), max(values), max(steps[-1], 1)
    room = max(high - low, LEAST_RANGE * max(abs(low), abs(high))) or 1.0
    places = [
        (2 + step / last * (CURVE_WIDTH - 4), CURVE_HEIGHT / 2 - (value - (low + high) / 2) / room * (CURVE_HEIGHT - 4))
        for step, value in curve.points
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    title = f"{curve.figure}: {number(values[0], 3)} to {number(values[-1], 3)} in {steps[-1]:,} steps"
    return Markup(
        f'<svg class="learning" viewBox="0 0 {CURVE_WIDTH} {CURVE_HEIGHT}" width="{CURVE_WIDTH}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f'<polyline fill="none" stroke="currentColor" points="{line}"/></svg>'
    )


def frame(x: Axis, y: Axis, canvas: Canvas = WIDE) -> str:
    """Both axes with their ticks, as SVG."""
    floor, left, right = canvas.floor, LEFT, canvas.right
    parts = [f'<path class="axis" d="M{left} {TOP}V{floor}H{right}"/>']
    for value in x.ticks:
        at = f"{x.at(value):.1f}"
        parts.append(f'<path class="grid" d="M{at} {TOP}V{floor}"/>')
        parts.append(f'<text x="{at}" y="{floor + 18}" text-anchor="middle">{x.text(value)}</text>')
    for value in y.ticks:
        height = y.at(value)
        parts.append(f'<path class="grid" d="M{left} {height:.1f}H{right}"/>')
        parts.append(f'<text x="{left - 8}" y="{height + 4:.1f}" text-anchor="end">{y.text(value)}</text>')
    return "".join(parts)


def titles(across: str, up: str, canvas: Canvas = WIDE) -> str:
    """The axis titles as SVG; the caller escapes both texts."""
    middle = (LEFT + canvas.right) / 2
    return (
        f'<text class="title" x="{middle}" y="{canvas.height - 8}" text-anchor="middle">{across}</text>'
        f'<text class="title" transform="translate(14 {(TOP + canvas.floor) / 2}) rotate(-90)" '
        f'text-anchor="middle">{up}</text>'
    )


@dataclass(frozen=True)
class Dot:
    """An attack on a row, by its AUC.

    Args:
        kind, attack: As its page is named.
        label: The attack for people.
        title: The figure's.
    """

    kind: str
    attack: str
    label: str
    title: str
    score: ScoreRecord
    certified: bool


def attack_dots(row: Row) -> list[Dot]:
    """The attacks of a row that gave an AUC, strongest first."""
    certified = row.panel.certified | row.membership.certified
    dots = []
    for record in row.records:
        mine = next((name for name in (BY_IMAGE, BY_PERSON, MEMBERS) if name in record.scores), None)
        key = attack_key(record)
        if key is not None and record.status == "ok" and mine is not None:
            score, title, name = record.scores[mine], record.metrics[mine].title, short(record.evaluator)
            dots.append(Dot(*key, name, title, score, record.evaluator in certified))
    return sorted(dots, key=lambda dot: (-dot.score.value, dot.label))


DOT_WIDTH, DOT_HEIGHT, LEAST_AUC = 300, 16, 0.4


def dot_plot(dot: Dot) -> Markup:
    """An AUC from `LEAST_AUC` to 1 with its interval, over chance's."""

    def at(value: float) -> float:
        share = (min(max(value, LEAST_AUC), 1.0) - LEAST_AUC) / (1 - LEAST_AUC)
        return 6 + share * (DOT_WIDTH - 12)

    score, middle = dot.score, DOT_HEIGHT / 2
    parts = [f'<path class="axis" d="M6 {middle}H{DOT_WIDTH - 6}"/>']
    if score.null_low is not None and score.null_high is not None:
        a, b = at(score.null_low), at(score.null_high)
        parts.append(f'<rect class="chance" x="{a:.1f}" y="0" width="{max(1.0, b - a):.1f}" height="{DOT_HEIGHT}"/>')
    if score.low is not None and score.high is not None:
        parts.append(f'<path class="ends" d="M{at(score.low):.1f} {middle}H{at(score.high):.1f}"/>')
    kind = "dot" if dot.certified else "dot hollow"
    parts.append(f'<circle class="{kind}" cx="{at(score.value):.1f}" cy="{middle}" r="4"/>')
    told = f"{number(score.value, 3)}, {interval(score.low, score.high, 3)}"
    return Markup(
        f'<svg class="dot-plot" viewBox="0 0 {DOT_WIDTH} {DOT_HEIGHT}" role="img" aria-label="{escape(told)}">'
        f"{''.join(parts)}</svg>"
    )


STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
TICKS = 6
MARGIN = 0.06
LEAST, MOST = 1e-9, 1e100  # the range that is drawn: figures beyond it stand at its ends


@dataclass(frozen=True)
class Axis:
    """The place of figures on an axis.

    Args:
        low, high: The range of figures, on a logarithmic axis of their logarithms.
        start, end: The places of the worst and the best end of the range, in units of the picture.
        ticks: Round figures within it.
        flipped: Whether less is better, so that less stands at `end`.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    log: bool
    flipped: bool

    def at(self, value: float | None) -> float:
        """The place of a figure, clamped to the range."""
        assert value is not None
        share = (min(max(_scaled(value, self.log), self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + (1 - share if self.flipped else share) * (self.end - self.start)

    def text(self, value: float) -> str:
        """A tick in print."""
        if self.log or abs(value) >= 1000:
            return number(value, None if value < 1 or value >= 1e6 else 0)
        return f"{value:.3f}".rstrip("0").rstrip(".").replace("-", "−")


def axis(
    figures: Sequence[Figure], start: float, end: float, *, log: bool, better: str, more: Iterable[float | None] = ()
) -> Axis:
    """An axis for figures, their intervals, intervals of chance, and `more`."""
    ends = [
        value
        for one in figures
        for value in (one.value, one.low, one.high, one.null_low, one.null_high)
        if value is not None
    ]
    ends += [value for value in more if value is not None]
    return _axis(ends, start, end, log=log, flipped=better == "lower")


def _axis(values: Sequence[float], start: float, end: float, *, log: bool, flipped: bool) -> Axis:
    scaled = [_scaled(value, log) for value in values]
    low, high = min(scaled), max(scaled)
    room = MARGIN * (high - low) or 0.05 * abs(low) or 0.5
    return Axis(low - room, high + room, start, end, _ticks(low - room, high + room, log), log, flipped)


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
