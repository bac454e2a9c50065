"""What pictures have in common: their size, axes with ticks, titles, and names that fit."""

from __future__ import annotations

from leaderboard.axis import Axis

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
    """What stands on the axes, as SVG; both texts are escaped by the caller."""
    return (
        f'<text class="title" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{across}</text>'
        f'<text class="title" transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{up}</text>'
    )


def shortened(label: str, length: int = LONGEST) -> str:
    """One line of at most that many characters."""
    line = " ".join(label.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
