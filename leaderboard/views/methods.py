"""A page a method: what it is, and all of its rows."""

from __future__ import annotations

from collections.abc import Iterator

from leaderboard.edition import Edition
from leaderboard.environment import drawn
from leaderboard.lines import Line
from leaderboard.page import Page, inputs
from leaderboard.views.shared import MOST_LINES, common, numbered, split


def methods(edition: Edition) -> Iterator[Page]:
    """The pages of every method."""
    mine: dict[str, list[Line]] = {}
    for line in edition.lines:
        mine.setdefault(line.row.method, []).append(line)
    for method, lines in mine.items():
        stem = edition.methods[method]
        parts = list(split(lines, MOST_LINES))
        sources = sorted({record.method.source for line in lines for record in line.row.records})
        for number, some in parts:
            yield Page(
                f"methods/{numbered(stem, number)}",
                inputs("method", edition.described, len(parts), [edition.prints[line.id] for line in some]),
                drawn(
                    "method.html", **common(edition, "../"), method=method, sources=sources, lines=some, at=number,
                    pages=[numbered(stem, each) for each, _ in parts], role=lines[0].reference,
                    kinds=sorted({line.kind for line in lines} - {"unknown"}),
                ),
            )  # fmt: skip
