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
class Difference:
    """A row against another by one figure, on the same people and keys.

    Args:
        p: The probability that they are equal, corrected for all pairs of rows.
        value, low, high: The one less the other, with the 95 % interval of this pair alone; of guesses their ratio.
        ratio: Whether it is a ratio.
    """

    p: float
    value: float
    low: float
    high: float
    ratio: bool

    @property
    def turned(self) -> Difference:
        """The other against the one."""
        if self.ratio:
            return Difference(self.p, 1 / self.value, 1 / self.high, 1 / self.low, self.ratio)
        return Difference(self.p, -self.value, -self.high, -self.low, self.ratio)


@dataclass(frozen=True)
class Ranking:
    """Ranks and tests of all rows.

    Args:
        ranks: By cell and metric.
        tests: How two rows differ: by cell, other cell and metric.
    """

    ranks: Mapping[str, Ranks] = field(default_factory=dict)
    tests: Mapping[str, Mapping[str, Mapping[str, Difference]]] = field(default_factory=dict)


def ranking(parts: Sequence[Section]) -> Ranking:
    """Rows that speak of the very same rows of data, compared.

    Left out are reference methods, rows that nobody but their author measured, and figures that are unrated or not
    certified.
    """
    groups: dict[str, list[Row]] = {}
    for part in parts:
        for row in part.rows:
            if row.records[0].method.role is None and not row.unrated and row.vouched:
                which = json.dumps([part.slug, row.choice, row.device], sort_keys=True)
                groups.setdefault(which, []).append(row)
    ranks: dict[str, dict[str, tuple[int, int, int]]] = {}
    tests: dict[str, dict[str, dict[str, Difference]]] = {}
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
                apart = Difference(p, *found.sizes[a, b], ratio=found.ratio)
                tests.setdefault(cells[a], {}).setdefault(cells[b], {})[metric] = apart
                tests.setdefault(cells[b], {}).setdefault(cells[a], {})[metric] = apart.turned
    return Ranking(ranks, tests)
