"""The colours of pages in light and dark: text and the edges of controls stand out from what is behind them."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from leaderboard.downloads import COLOURS
from leaderboard.panel import SIGNS

TEXT, EDGE = 4.5, 3.0
"""WCAG 2.2, success criteria 1.4.3 and 1.4.11."""
SHEET = (resources.files("leaderboard") / "static/board.css").read_text()
SCHEMES = re.findall(r":root \{(.*?)\}", SHEET, re.DOTALL)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["light", "dark"])
@pytest.mark.parametrize("behind", ["ground", "raised"])
def test_text_and_edges_stand_out(scheme: str, behind: str) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", scheme))
    least = dict.fromkeys(("ink", "quiet", "link", "warn", "bad", "chance", "good"), TEXT) | {"strong": EDGE}
    faint = {name: contrast(colours[name], colours[behind]) for name in least}
    assert {name: ratio for name, ratio in faint.items() if ratio < least[name]} == {}


def test_every_verdict_has_its_colour_on_pages_and_badges() -> None:
    light = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", SCHEMES[0]))
    rules = re.findall(r"^(\.verdict\.[^{]*)\{ color: var\(--(\w+)\); \}", SHEET, re.MULTILINE)
    drawn = {slug: name for chosen, name in rules for slug in re.findall(r"\.verdict\.([a-z-]+)", chosen)}
    assert set(drawn) == {word.replace(" ", "-") for word in SIGNS}
    assert {word: light[drawn[word.replace(" ", "-")]] for word in COLOURS} == COLOURS
