"""Rows to static pages: the same records give the same bytes, with no network, no server and no clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources

from bench.results.records import json_schema
from leaderboard.downloads import results_csv, results_json
from leaderboard.edition import Edition
from leaderboard.intake import Intake
from leaderboard.page import Page, inputs, plain
from leaderboard.views.attacks import attacks
from leaderboard.views.cells import cells
from leaderboard.views.datasets import datasets
from leaderboard.views.front import front
from leaderboard.views.methods import methods
from leaderboard.views.tools import tools

STATIC = (
    "board.css", "table.js", "plot.js", "choose.js", "compare.js", "rows.js", "uplot/uPlot.iife.min.js",
    "uplot/uPlot.min.css", "uplot/LICENSE",
)  # fmt: skip


def render(taken: Intake) -> dict[str, Page]:
    """Every file of the site by its relative name, not yet drawn."""
    edition = Edition.of(taken)
    views = (front, tools, datasets, methods, attacks, cells, _static, _downloads)
    return {page.name: page for view in views for page in view(edition)}


def _static(edition: Edition) -> Iterator[Page]:
    static = resources.files("leaderboard") / "static"
    for name in STATIC:
        yield plain(f"static/{name}", (static / name).read_bytes())


def _downloads(edition: Edition) -> Iterator[Page]:
    told = inputs("downloads", edition.prints)
    records = [record for row in edition.board for record in row.records]
    yield Page("results.csv", told, lambda: results_csv(records))
    yield Page("results.json", told, lambda: results_json(records))
    yield plain("record.schema.json", json.dumps(json_schema(), indent=2, sort_keys=True) + "\n")
