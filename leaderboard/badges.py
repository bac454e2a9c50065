"""A badge a row: an SVG, and JSON for badge services."""

from __future__ import annotations

import json
from collections.abc import Mapping

from leaderboard.escapes import xml
from leaderboard.panel import Word
from leaderboard.row_schema import BoardRow

LABEL = "Veil Bench"
LETTER, MARGIN, HEIGHT = 6.6, 6, 20  # pixels at 11 of height
COLOURS: Mapping[Word, str] = {
    "broken": "#b4232a", "members told": "#b4232a", "dented": "#a15c00", "not broken": "#1f6f43",
    "members not told": "#1f6f43",
}  # fmt: skip
GREY = "#5b636b"  # of verdicts that say neither


def message(row: BoardRow) -> str:
    """The badge's text: verdict, data set, preset and tier.

    It says no more than the board: what is not rated says that, and a reference method is never ranked.
    """
    word = "reference" if row.reference else row.verdict
    return f"{word} · {_short(f'{row.dataset} {row.preset}', 32)} · {row.tier}"


def colour(row: BoardRow) -> str:
    """By the verdict, which stands beside it in words."""
    return GREY if row.reference else COLOURS.get(row.verdict, GREY)


def badge_svg(row: BoardRow) -> str:
    """The badge as an SVG that loads and runs nothing."""
    text = message(row)
    left, right = (round(len(part) * LETTER + 2 * MARGIN) for part in (LABEL, text))
    said, label = xml(f"{LABEL}: {text}"), xml(LABEL)
    fit = 'lengthAdjust="spacingAndGlyphs"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" role="img" '
        f'aria-label="{said}">'
        f"<title>{said}</title>"
        f'<rect width="{left}" height="{HEIGHT}" fill="#24292e"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{colour(row)}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{MARGIN}" y="14" textLength="{left - 2 * MARGIN}" {fit}>{label}</text>'
        f'<text x="{left + MARGIN}" y="14" textLength="{right - 2 * MARGIN}" {fit}>{xml(text)}'
        "</text></g></svg>\n"
    )


def badge_json(row: BoardRow) -> str:
    """The endpoint schema of shields.io, version 1."""
    content = {"schemaVersion": 1, "label": LABEL, "message": message(row), "color": colour(row).lstrip("#")}
    return json.dumps(content, sort_keys=True) + "\n"


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
