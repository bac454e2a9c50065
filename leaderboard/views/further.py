"""A board of more rows than one page takes: pages of them, and the same rows for the script that joins them again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from html.parser import HTMLParser

from pydantic import JsonValue

from leaderboard.edition import Edition
from leaderboard.environment import drawn
from leaderboard.lines import Line
from leaderboard.page import Page, inputs
from leaderboard.row_data import dumped
from leaderboard.views.shared import MOST_LINES, common, numbered, split

MOST_FRONT = 300
"""Rows on each page of a board in several: half a megabyte, as a script too."""


def front_parts(edition: Edition) -> list[tuple[str, Sequence[Line]]]:
    """The pages of the board with the rows of each, reference methods and rows that do not apply left out.

    The first is the front page. Where all rows of a board fit into one page, it is the only one.
    """
    shown = [line for line in edition.lines if not line.reference and not line.idle]
    most = MOST_LINES if len(edition.lines) <= MOST_LINES else MOST_FRONT
    return [("index.html" if number == 1 else numbered("board", number), some) for number, some in split(shown, most)]


def further_scripts(edition: Edition) -> list[str]:
    """The scripts that hold the rows of the further pages."""
    return [f"rows/lines-{number}.js" for number in range(2, len(front_parts(edition)) + 1)]


def further(edition: Edition) -> Iterator[Page]:
    """The further pages of the board and their scripts; none where the front page has all rows."""
    parts = front_parts(edition)
    names = [name for name, _ in parts]
    for number, (name, some) in enumerate(parts[1:], 2):
        told = inputs("board", edition.described, edition.dates, names, [edition.prints[line.id] for line in some])
        several = {"lines": some, "one": len(edition.parts) < 2}
        yield Page(name, told, drawn("further.html", **common(edition, ""), **several, pages=names, at=number))
        yield Page(f"rows/lines-{number}.js", told, partial(_script, common(edition, "") | several))


def _script(told: dict[str, object]) -> str:
    tree = Tree()
    tree.feed(drawn("rows.html", **told)())
    return f"veil.more({dumped(tree.top)});\n"


class Tree(HTMLParser):
    """Markup of ours as plain data, from which a script makes elements: name, attributes, and what it holds.

    Attributes:
        top: The outermost elements; text between elements that only indents them is left out.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.top: list[JsonValue] = []
        self._open = [self.top]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """An element begins; tables have none that never end."""
        made: list[JsonValue] = [tag, {name: True if value is None else value for name, value in attributes}]
        self._open[-1].append(made)
        self._open.append(made)

    def handle_endtag(self, tag: str) -> None:
        """It ends."""
        self._open.pop()

    def handle_data(self, text: str) -> None:
        """Text in it."""
        if "\n" not in text or text.strip():
            self._open[-1].append(text)
