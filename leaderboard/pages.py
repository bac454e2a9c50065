"""Rows to static pages: the same records give the same bytes, with no network, no server and no clock."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

from leaderboard.downloads import files
from leaderboard.edition import Edition
from leaderboard.intake import Intake
from leaderboard.page import Page, inputs, plain
from leaderboard.views.attacks import attacks
from leaderboard.views.cells import cells
from leaderboard.views.datasets import datasets
from leaderboard.views.front import front
from leaderboard.views.further import further
from leaderboard.views.methods import methods
from leaderboard.views.reproduction import reproduction
from leaderboard.views.tools import tools

STATIC = (
    "board.css", "table.js", "plot.js", "choose.js", "compare.js", "rows.js", "fold.js",
    "uplot/uPlot.iife.min.js", "uplot/uPlot.min.css", "uplot/LICENSE",
)  # fmt: skip


def render(taken: Intake) -> dict[str, Page]:
    """Every file of the site by its relative name, not yet drawn."""
    edition = Edition.of(taken)
    views = (front, further, tools, datasets, methods, attacks, cells, reproduction, _static, _downloads)
    return {page.name: page for view in views for page in view(edition)}


def _static(edition: Edition) -> Iterator[Page]:
    static = resources.files("leaderboard") / "static"
    for name in STATIC:
        yield plain(f"static/{name}", (static / name).read_bytes())


def _downloads(edition: Edition) -> Iterator[Page]:
    shared = inputs("downloads", edition.prints, edition.described)
    for made in files(edition.numbers):
        told = shared if made.row is None else inputs("downloads", edition.prints[made.row.id])
        yield Page(made.name, told, made.make)
