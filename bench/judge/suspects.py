"""Searches for raw rows in released rows to which no link leads: among the rows as they are, by what links teach, and
among what the same key makes of a few rows.

The people are dealt to parts: the first `FOLDS` are private, the others were never released. Released rows that are
declared to show nobody of a fold are asked whether they find people of the fold rather than people of the latter.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bench.judge.faces import faces, planes
from bench.judge.learned import recovered
from bench.judge.people import groups
from bench.judge.search import Candidates, Search, cosine, search, strongest

FOLDS = 3
FEWEST_PAIRS = 8
WHOLE = 0.01
"""Where releases of people who were never released differ as wholes at this level, releases are not compared."""


@dataclass(frozen=True, eq=False)
class Lineup:
    """Who may be found.

    Args:
        raw: (t, ...) float32 rows, private ones first.
        group: (t,) int64, see `bench.judge.people`.
        part: (t,) int64: below FOLDS private, FOLDS and above never released.
    """

    raw: torch.Tensor
    group: torch.Tensor
    part: torch.Tensor

    def fold(self, number: int) -> Candidates:
        """The people of a fold among those who were never released."""
        columns = ((self.part == number) | (self.part >= FOLDS)).nonzero()[:, 0]
        return Candidates(columns, self.group[columns], self.part[columns] == number)

    @property
    def all(self) -> Candidates:
        """All private people among those who were never released."""
        return Candidates(torch.arange(len(self.part)), self.group, self.part < FOLDS)


def in_raw_rows(released: torch.Tensor, told: torch.Tensor | None, lineup: Lineup) -> list[Search]:
    """Searches among the raw rows themselves, one a face and fold.

    Args:
        released: (m, ...) float32.
        told: (m, FOLDS) bool: whom a released row is declared to show; None where no row is declared to show anybody.
        lineup: Who may be found.
    """
    found = []
    for name, raw, face in faces(lineup.raw, released):
        if told is None:
            among = lineup.all
            found.append(search(name, cosine(face, raw[among.columns]), among))
        else:
            found += _by_fold(name, face, raw, told, lineup)
    return [each for each in found if each is not None]


def by_what_links_teach(
    released: torch.Tensor, told: torch.Tensor, pairs: torch.Tensor, lineup: Lineup, half: torch.Tensor
) -> list[Search]:
    """Searches by a map that is learned from half of the declared links, among rows that it did not learn from.

    Args:
        released, told, lineup: As in `in_raw_rows`.
        pairs: (p, 2) int64 declared links between rows of the line-up and released rows.
        half: (p,) bool: those to learn from.
    """
    found = []
    raw = lineup.raw.flatten(1)
    learned_from = torch.zeros(len(released), dtype=torch.bool)
    learned_from[pairs[half, 1]] = True
    for name, rows in planes(released):
        if name not in ("values", "last byte"):
            continue
        for fold in range(FOLDS):
            known = pairs[half & (lineup.part[pairs[:, 0]] != fold) & ~told[pairs[:, 1], fold]]
            if len(known) < FEWEST_PAIRS:
                continue
            among = lineup.fold(fold)
            guess = recovered(rows.flatten(1), raw, known, raw[among.columns])
            asked = ~told[:, fold] & ~learned_from
            found.append(search(f"learned from half of the links, {name}", guess[asked], among))
    return [each for each in found if each is not None]


def in_releases(released: torch.Tensor, told: torch.Tensor, again: Lineup) -> tuple[list[Search], float]:
    """Searches among what the same key released of each part by itself, and p of these releases' differing as wholes.

    A release may differ as a whole from another (statistics of a batch): then the people in it are not exchangeable,
    which shows between two parts that were never released with the others.

    Args:
        released, told: As in `in_raw_rows`.
        again: Released rows by part, with the group of the raw row that each is declared to show.
    """
    found: list[Search | None] = []
    wholes: list[Search | None] = []
    for name, ordered in (("released again", False), ("released again, values in order", True)):
        left, right = (rows.flatten(1) for rows in (released, again.raw))
        if ordered:  # patches may be shuffled
            left, right = (rows.sort(dim=1).values for rows in (left, right))
        found += _by_fold(name, left, right, told, again)
        columns = (again.part >= FOLDS).nonzero()[:, 0]
        others = cosine(left, right[columns])
        for one in (FOLDS, FOLDS + 1):
            pair = Candidates(columns, again.group[columns], again.part[columns] == one)
            wholes.append(search(name, others, pair))
    whole = strongest([each for each in wholes if each is not None])
    return [each for each in found if each is not None], 1.0 if whole is None else whole.p


def _by_fold(
    name: str, released: torch.Tensor, rows: torch.Tensor, told: torch.Tensor, lineup: Lineup
) -> list[Search | None]:
    found: list[Search | None] = []
    for fold in range(FOLDS):
        among, asked = lineup.fold(fold), released[~told[:, fold]]
        found.append(search(name, cosine(asked, rows[among.columns]), among) if len(asked) else None)
    return found


def shown(links: torch.Tensor, part: torch.Tensor, released: torch.Tensor) -> torch.Tensor:
    """(m, FOLDS) bool: the folds whose people each released row is declared to show.

    Released rows (m, ...) that are equal to the last bit show whom any of them is declared to show: under k-Same every
    person has a row of her own, the mean of her cluster, and stands in the rows of all its members.
    """
    told = torch.zeros(len(released), FOLDS, dtype=torch.bool)
    fold = part[links[:, 0]]
    told[links[:, 1], fold] = True
    equal = groups(released, None)
    shared = torch.zeros(int(equal.max()) + 1, FOLDS, dtype=torch.int64).index_add_(0, equal, told.long())
    return shared[equal] > 0
