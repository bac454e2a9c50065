"""A page a data set: what it is, its rows on a line each, pictures a size, and all figures on pages of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from leaderboard.board import missing
from leaderboard.budget import budget_plot
from leaderboard.edition import Edition
from leaderboard.environment import drawn
from leaderboard.lines import Line
from leaderboard.page import Page, inputs
from leaderboard.scatter import PLANES, scatter
from leaderboard.sections import Section
from leaderboard.selection import used
from leaderboard.views.shared import MOST_LINES, MOST_WIDE, common, numbered, split

FIRST_ORDER = "reid-auc"
BY_ATTACK = ("reid-auc", "guesswork")  # told of every attack on every row


def datasets(edition: Edition) -> Iterator[Page]:
    """The list of data sets, and the pages of each."""
    described = [[part.slug, part.title, part.data.model_dump(mode="json") if part.data else None, len(part.rows)]
                 for part in edition.parts]  # fmt: skip
    yield Page(
        "data/index.html", inputs("data sets", described, edition.dates),
        drawn("datasets.html", **common(edition, "../"), parts=edition.parts),
    )  # fmt: skip
    by_set: dict[str, list[Line]] = {}
    for line in edition.lines:
        by_set.setdefault(line.section, []).append(line)
    for part in edition.parts:
        lines = by_set[part.slug]
        yield from _dataset(edition, part, lines)
        yield from _wide(edition, part, lines)


def _dataset(edition: Edition, part: Section, lines: Sequence[Line]) -> Iterator[Page]:
    parts = list(split(lines, MOST_LINES))
    shared = common(edition, "../") | {"part": part, "pages": [numbered(f"{part.slug}", number) for number, _ in parts]}
    whole = inputs("data set", edition.described, part.title, part.splits, [edition.prints[line.id] for line in lines])
    for number, some in parts:
        told = dict(shared) | {
            "at": number,
            "lines": [line for line in some if not line.reference and not line.idle],
            "idle": [line for line in some if not line.reference and line.idle],
            "references": [line for line in some if line.reference],
        }
        yield Page(
            f"data/{numbered(part.slug, number)}",
            inputs(whole, number),
            partial(_draw, told, lines if number == 1 else (), some),
        )


def _draw(told: Mapping[str, object], lines: Sequence[Line], some: Sequence[Line]) -> str:
    """The page of a data set with its pictures, which are drawn only where the page is."""
    return drawn(
        "dataset.html", **told, pictures=list(_pictures(lines)), budget=budget_plot([line.row for line in lines]),
        reasons=missing(line.row for line in some), more_reasons=0,
    )()  # fmt: skip


def _pictures(lines: Sequence[Line]) -> Iterator[tuple[str, object]]:
    """Every picture of a data set, with the size that it speaks of: one size at a time."""
    groups: dict[tuple[str, int], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.row.preset, line.row.seed), []).append(line)
    for (preset, seed), some in sorted(groups.items()):
        for plane in PLANES:
            svg = scatter(some, plane, "../")
            if svg is not None:
                yield f"preset {preset}, seed {seed}", svg


def _wide(edition: Edition, part: Section, lines: Sequence[Line]) -> Iterator[Page]:
    """All figures of every row, and every attack on every row."""
    ordered = sorted(lines, key=lambda line: (bool(line.reference), line.row.preset, line.row.label, line.id))
    by_attack = [column for name in BY_ATTACK for column in edition.columns if column.name == name]
    for what, template in (("figures", "figures.html"), ("attacks", "by_attack.html")):
        parts = list(split(ordered, MOST_WIDE))
        names = [numbered(f"{part.slug}-{what}", number) for number, _ in parts]
        for number, some in parts:
            rows = [line.row for line in some]
            yield Page(
                f"data/{names[number - 1]}",
                inputs(what, edition.described, names, part.title, [edition.prints[line.id] for line in some]),
                drawn(
                    template, **common(edition, "../"), part=part, rows=rows, pages=names, at=number,
                    shown=used(edition.columns, rows), first=FIRST_ORDER, by_attack=by_attack,
                ),
            )  # fmt: skip
