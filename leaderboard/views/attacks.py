"""A page an attack: what Eve knows, whether its controls hold, how far it reaches, and whom it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from leaderboard.attack_record import Outcome, attack_record
from leaderboard.edition import Edition
from leaderboard.environment import drawn
from leaderboard.page import Page, inputs
from leaderboard.views.shared import common

MOST_OUTCOMES = 1000
FEW = 60
"""Rows of the gravest outcome that stand open on the page of an attack."""


def attacks(edition: Edition) -> Iterator[Page]:
    """The list of attacks, and a page each."""
    everything = inputs("attacks", edition.described, edition.prints)
    found = [(stem, attack_record(*key, tried)) for key, (stem, tried) in edition.attacks.items()]
    yield Page("attacks/index.html", everything, drawn("attacks.html", **common(edition, "../"), attacks=found))
    for stem, record in found:
        shown = [[edition.prints[one.line.id], one.record.evaluator] for one in record.outcomes]
        yield Page(
            f"attacks/{stem}.html", inputs("attack", edition.described, shown),
            drawn(
                "attack.html", **common(edition, "../"), attack=record, few=FEW,
                outcomes=[(state, list(some)) for state, some in groupby(record.outcomes[:MOST_OUTCOMES], _state)],
                more=max(0, len(record.outcomes) - MOST_OUTCOMES),
            ),
        )  # fmt: skip


def _state(outcome: Outcome) -> str:
    return outcome.state
