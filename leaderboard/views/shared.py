"""What every page is drawn with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from leaderboard.edition import Edition

MOST_LINES = 600
"""Rows on one line each that a page holds: 0.8 MB of them."""
MOST_WIDE = 60
"""Rows with all of their figures that a page holds."""
T = TypeVar("T")


def common(edition: Edition, root: str) -> dict[str, object]:
    """What the frame of a page and its tables take.

    Args:
        edition: The build.
        root: What leads from the page to the site's root: "" or "../".
    """
    return {**edition.shared, "root": root}


def split(some: Sequence[T], most: int) -> Iterator[tuple[int, Sequence[T]]]:
    """The sequence in parts of at most `most`, numbered from 1; an empty one is one part."""
    for number, start in enumerate(range(0, max(1, len(some)), most), 1):
        yield number, some[start : start + most]


def numbered(stem: str, number: int) -> str:
    """The file of a part: the first has the plain name.

    >>> numbered("data/digits", 1), numbered("data/digits", 2)
    ('data/digits.html', 'data/digits-2.html')
    """
    return f"{stem}.html" if number == 1 else f"{stem}-{number}.html"
