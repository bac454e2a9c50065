"""The ledger as a page: what was reproduced of the papers, row by row."""

from __future__ import annotations

from collections.abc import Iterator

from leaderboard.edition import Edition
from leaderboard.environment import drawn
from leaderboard.page import Page, inputs
from leaderboard.reproduction import VERDICTS, shipped
from leaderboard.views.shared import common


def reproduction(edition: Edition) -> Iterator[Page]:
    """The page `reproduction`, the same for every board: it quotes what the project published."""
    ledger = shipped()
    yield Page(
        "reproduction.html", inputs("reproduction", ledger.model_dump(mode="json"), edition.described, edition.dates),
        drawn("reproduction.html", **common(edition, ""), ledger=ledger, verdicts=VERDICTS),
    )  # fmt: skip
