"""Data sets across, methods down: how each method stands on each, in a sign and a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.lines import Line


@dataclass(frozen=True)
class Place:
    """A method on a data set.

    Args:
        lines: All of its rows there.
        worst: The row with the gravest verdict.
        words: How many rows there are, by verdict, in words.
    """

    lines: tuple[Line, ...]
    worst: Line
    words: str


@dataclass(frozen=True)
class Matrix:
    """Verdicts of methods (down) on data sets (across).

    Args:
        data: Slugs, titles, and names as short as they may be, in the order of the lines.
        methods: Names, with their places in the order of `data`; None where it never ran.
    """

    data: tuple[tuple[str, str, str], ...]
    methods: tuple[tuple[str, tuple[Place | None, ...]], ...]


def matrix(lines: Sequence[Line]) -> Matrix:
    """The verdicts of all rows but those of reference methods."""
    shown = [line for line in lines if not line.reference]
    data = tuple(dict.fromkeys((line.section, line.data, line.name) for line in shown))
    found: dict[tuple[str, str], list[Line]] = {}
    for line in shown:
        found.setdefault((line.row.method, line.section), []).append(line)
    methods = sorted({line.row.method for line in shown})
    return Matrix(
        data,
        tuple(
            (method, tuple(_place(found[method, slug]) if (method, slug) in found else None for slug, _, _ in data))
            for method in methods
        ),
    )


def _place(lines: Sequence[Line]) -> Place:
    lines = [line for line in lines if line.row.vouched] or lines  # what others handed in speaks for itself alone
    counts: dict[str, int] = {}
    for line in sorted(lines, key=lambda line: -_gravity(line)):
        counts[line.standing.word] = counts.get(line.standing.word, 0) + 1
    words = ", ".join(f"{word} {count} of {len(lines)}" if len(lines) > 1 else word for word, count in counts.items())
    return Place(tuple(lines), max(lines, key=_gravity), words)


def _gravity(line: Line) -> int:
    """How grave a verdict is: what says something comes before what says nothing."""
    grave = ("broken", "members told", "dented", "not broken", "members not told", "not certified", "not rated")
    return len(grave) - grave.index(line.standing.word) if line.standing.word in grave else 0
