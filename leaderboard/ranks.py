"""Rank intervals of a board: which rows of one data set, size and seed paired tests tell apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leaderboard.board import Row
from leaderboard.comparison import ranked
from leaderboard.sections import Section

RANKED = ("utility-auc", "guesswork", "membership-auc")
MOST = 100  # rows that are compared pair by pair: beyond, nobody reads the ranks, and the pairs take minutes

Ranks = Mapping[str, tuple[int, int, int]]
"""Lowest and highest rank, and of how many rows, by metric."""


@dataclass(frozen=True)
class Ranking:
    """Ranks and tests of all rows.

    Args:
        ranks: By cell and metric.
        tests: The probability that two rows are equal, corrected for all pairs: by cell, other cell and metric.
    """

    ranks: Mapping[str, Ranks] = field(default_factory=dict)
    tests: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)


def ranking(parts: Sequence[Section]) -> Ranking:
    """Rows that speak of the very same rows of data, compared.

    Left out are reference methods, and figures that are unrated or not certified.
    """
    groups: dict[str, list[Row]] = {}
    for part in parts:
        for row in part.rows:
            if row.records[0].method.role is None and not row.unrated:
                which = json.dumps([part.slug, row.choice, row.records[0].device], sort_keys=True)
                groups.setdefault(which, []).append(row)
    ranks: dict[str, dict[str, tuple[int, int, int]]] = {}
    tests: dict[str, dict[str, dict[str, float]]] = {}
    for rows in groups.values():
        cells = {row.label: row.cell for row in rows}
        for metric in RANKED if len(cells) <= MOST else ():
            told = [row for row in rows if metric in row.entries and row.entries[metric].certified]
            found = ranked(told, metric) if len(told) > 1 else None
            if found is None:
                continue
            for label, (low, high) in found.ranks.items():
                ranks.setdefault(cells[label], {})[metric] = (low, high, len(found.ranks))
            for (a, b), p in found.pairs.items():
                for one, other in ((a, b), (b, a)):
                    tests.setdefault(cells[one], {}).setdefault(cells[other], {})[metric] = p
    return Ranking(ranks, tests)
