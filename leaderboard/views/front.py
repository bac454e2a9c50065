"""The front page: what a reader wants to know in ten seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leaderboard.board import missing
from leaderboard.downloads import links
from leaderboard.edition import Edition
from leaderboard.environment import drawn
from leaderboard.lines import Line
from leaderboard.matrix import matrix
from leaderboard.numbers.tables import can_write_parquet
from leaderboard.page import Page, inputs
from leaderboard.scatter import PLANES, points, scatter
from leaderboard.short import in_short
from leaderboard.views.further import front_parts, further_scripts
from leaderboard.views.shared import MOST_LINES, common
from leaderboard.views.tools import shards

MOST_REASONS = 400


def front(edition: Edition) -> Iterator[Page]:
    """The front page."""
    pages = front_parts(edition)
    idle = [line for line in edition.lines if not line.reference and line.idle]
    references = [line for line in edition.lines if line.reference]
    few = len(edition.lines) <= MOST_LINES
    gaps = missing([line.row for line in edition.lines])
    taken = edition.taken
    yield Page(
        "index.html",
        inputs(
            "front",
            edition.prints,
            edition.described,
            taken.limited,
            list(taken.broken),
            edition.dates,
            can_write_parquet(),
        ),
        drawn(
            "index.html",
            **common(edition, ""),
            taken=taken,
            downloads=links(edition.numbers),
            lines=pages[0][1],
            pages=[name for name, _ in pages],
            further=further_scripts(edition),
            few=few,
            idle=idle if few else [],
            references=references if few else [],
            count=len(edition.lines),
            short=in_short(edition.lines),
            matrix=matrix(edition.lines),
            picture=picture(edition.lines),
            reasons=gaps[:MOST_REASONS],
            more_reasons=max(0, len(gaps) - MOST_REASONS),
            shards=[page.name for page in shards(edition)],
        ),
    )


def picture(lines: Sequence[Line]) -> dict[str, object] | None:
    """The first picture: of the data set and size with the most rows that can be drawn, of as many the first."""
    groups: dict[tuple[str, str, int], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.data, line.row.preset, line.row.seed), []).append(line)

    def drawn_rows(key: tuple[str, str, int]) -> int:
        return next((count for plane in PLANES if (count := len(points(groups[key], plane)))), 0)

    for data, preset, seed in sorted(groups, key=drawn_rows, reverse=True):  # of as many, in the order of the board
        svg = next((made for plane in PLANES if (made := scatter(groups[data, preset, seed], plane, ""))), None)
        if svg is not None:
            shown = f"{groups[data, preset, seed][0].section}|{preset}|{seed}"  # by which the script knows it
            return {"svg": svg, "data": data, "preset": preset, "seed": seed, "shown": shown}
    return None
