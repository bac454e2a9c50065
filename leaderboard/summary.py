"""The front page's summaries: verdicts by data set and by method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.lines import JUDGED, Line
from leaderboard.standing import SIGNS, Standing

NAMED = 3
SETS = 8
"""Data sets that are told of in short; the matrix has all."""
GOOD = ("not broken", "members not told")


@dataclass(frozen=True)
class Told:
    """The rows of one verdict.

    Args:
        standing: The verdict.
        count: How many rows there are.
        best: The most useful of those whose utility surely beats chance, the best first, no method twice.
    """

    standing: Standing
    count: int
    best: tuple[Line, ...]


@dataclass(frozen=True)
class Short:
    """A data set in short.

    Args:
        section: Its slug.
        name: Its name.
        told: By verdict, the best for a data owner first.
        count: How many rows there are.
    """

    section: str
    name: str
    told: tuple[Told, ...]
    count: int

    @property
    def withstood(self) -> bool:
        """True if any row was not broken."""
        return any(one.standing.word in GOOD for one in self.told)

    @property
    def rest(self) -> int:
        """Number of rows with figures but no verdict."""
        return self.count - sum(one.count for one in self.told)


def in_short(lines: Sequence[Line]) -> list[Short]:
    """Each data set with a verdict; reference methods are left out."""
    sets: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if not line.reference and not line.idle:
            sets.setdefault((line.section, line.name), []).append(line)
    made = []
    for (section, name), some in sets.items():
        groups = [[line for line in some if line.standing.word == word] for word in SIGNS if word in JUDGED]
        told = tuple(Told(group[0].standing, len(group), _best(group)) for group in groups if group)
        if told:
            made.append(Short(section, name, told, len(some)))
    return made[:SETS]


def _useful(line: Line) -> float:
    """Utility above chance; 0 if that is not significant."""
    score = None if line.utility is None else line.utility.score
    if score is None or score.null is None or score.low is None or score.low <= score.null:
        return 0.0
    return score.value - score.null


def _best(lines: Sequence[Line]) -> tuple[Line, ...]:
    by_method: dict[str, Line] = {}
    for line in sorted(filter(_useful, lines), key=lambda line: (-_useful(line), line.id)):
        by_method.setdefault(line.row.method, line)
    return tuple(by_method.values())[:NAMED]


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
    """Gravity of a verdict; verdicts that say nothing come last."""
    grave = ("broken", "members told", "dented", "not broken", "members not told", "not certified", "not rated")
    return len(grave) - grave.index(line.standing.word) if line.standing.word in grave else 0
