"""A release under question: which of its rows are asked, and who may be found in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch

from bench.contract.seal import Sealed
from bench.judge.label_traces import label_traces
from bench.judge.people import deal, groups
from bench.judge.search import Search
from bench.judge.sharing import INSIDE, OUTSIDE
from bench.judge.suspects import FOLDS, WHOLE, Lineup, by_what_links_teach, in_raw_rows, in_releases, shown
from bench.rows.joined import joined
from bench.seeds import derive, generator
from bench.types import Dataset, NotApplicable, Release

MOST = 1200
"""Released rows, and rows of each kind that may be found: a random part of larger sets."""


@dataclass(frozen=True, eq=False)
class People:
    """Whose rows were released, and others of their kind whose rows never were.

    Args:
        private, control, test: The former, and two parts of the latter.
        owned: A part as its owner would release it, balanced as the private rows are; the number is for draws.
    """

    private: Dataset
    control: Dataset
    test: Dataset
    owned: Callable[[Dataset, int], Dataset]


@dataclass(frozen=True, eq=False)
class Questioned:
    """A release, the people whom it may show, and others of their kind who were never released; all on the CPU.

    Args:
        released: (m, ...) the released rows that are asked.
        labels: (m, k) theirs; None where none are released.
        told: (m, FOLDS) bool: whom each is declared to show; None where the method declares no links.
        pairs: (p, 2) int64: row of the line-up, released row; of mixed rows the primary one.
        lineup: Who may be found.
        pool: The rows that the line-up is drawn from, where they lie; `rows` (t,) int64 says which.
        seed: For what is drawn.
    """

    released: torch.Tensor
    labels: torch.Tensor | None
    told: torch.Tensor | None
    pairs: torch.Tensor
    lineup: Lineup
    pool: Dataset
    rows: torch.Tensor
    seed: int

    @classmethod
    def of(cls, people: People, sealed: Sealed, seed: int) -> Self:
        """The release under question, with the people of the cell; `seed` is for all that is drawn."""
        pool = joined(joined(people.private, people.control), people.test)
        group = groups(pool.samples, pool.subjects)
        ends = [0, len(people.private), len(people.private) + len(people.control), len(pool)]
        part = torch.full((len(pool),), FOLDS)
        part[: ends[1]], part[ends[2] :] = deal(group[: ends[1]], FOLDS, derive(seed, "folds")), FOLDS + 1
        kinds = itertools.pairwise(ends)
        rows = torch.cat([_some(torch.arange(*kind), derive(seed, "rows", *kind)) for kind in kinds])
        asked = _some(torch.arange(len(sealed.release)), derive(seed, "asked"))
        told, pairs = None, torch.empty(0, 2, dtype=torch.int64)
        if sealed.links is not None:
            links = sealed.links.cpu()
            told = shown(links, part, sealed.release.samples.cpu())[asked]
            first = links if sealed.primary is None else links[sealed.primary.cpu()]
            row, column = torch.full((len(pool),), -1), torch.full((len(sealed.release),), -1)
            row[rows], column[asked] = torch.arange(len(rows)), torch.arange(len(asked))
            found = torch.stack((row[first[:, 0]], column[first[:, 1]]), dim=1)
            pairs = found[(found >= 0).all(dim=1)]
        labels = None if sealed.release.labels is None else sealed.release.labels.cpu()[asked]
        return cls(
            sealed.release.samples.cpu()[asked], labels, told, pairs,
            Lineup(pool.samples.cpu()[rows], group[rows], part[rows]), pool, rows, seed,
        )  # fmt: skip

    def members(self) -> list[torch.Tensor]:
        """For each part that is released by itself as many rows (q,) int64 of the line-up, in random order.

        None is told from others by its size. Where links are declared the parts are those of the line-up; else there
        are more and smaller parts, `INSIDE` of them with people of the release.
        """
        number = self.lineup.part
        if self.told is None:
            private, number = number < FOLDS, torch.empty_like(number)
            number[private] = deal(self.lineup.group[private], INSIDE, derive(self.seed, "inside"))
            number[~private] = deal(self.lineup.group[~private], OUTSIDE, derive(self.seed, "outside")) + INSIDE
        found = [
            rows[torch.randperm(len(rows), generator=generator(derive(self.seed, "order", part)))]
            for part in range(FOLDS + 2 if self.told is not None else INSIDE + OUTSIDE)
            for rows in [(number == part).nonzero()[:, 0]]
        ]
        fewest = min(map(len, found))
        return [rows[:fewest] for rows in found]

    def parts(self, people: People) -> list[Dataset]:
        """The people of each part by themselves, with labels as a data owner gives them."""
        places = [self.rows[rows].to(self.pool.samples.device) for rows in self.members()]
        return [people.owned(self.pool.take(rows), number) for number, rows in enumerate(places)]

    def searches(self, again: Sequence[Release | NotApplicable]) -> tuple[list[list[Search]], str]:
        """Every search by kind, and whether releases of the parts could be compared.

        Args:
            again: What the key made of each of `parts`; empty where no links are declared.
        """
        if self.told is None:
            return [in_raw_rows(self.released, None, self.lineup)], "no links are declared"
        half = torch.rand(len(self.pairs), generator=generator(derive(self.seed, "half"))) < 0.5
        found = [
            in_raw_rows(self.released, self.told, self.lineup),
            by_what_links_teach(self.released, self.told, self.pairs, self.lineup, half),
        ]
        made = [each for each in again if isinstance(each, Release)]
        if len(made) < len(again):
            return found, next(f"no: {reason}" for reason in again if isinstance(reason, NotApplicable))
        if any(each.samples.shape[1:] != self.released.shape[1:] for each in made):
            return found, "no: releases of fewer people have another shape"
        searched, whole = in_releases(self.released, self.told, self._released_again(made))
        if whole < WHOLE:
            return found, f"no: those of others differ as wholes (p {whole:.2g})"
        return [*found, searched], "yes"

    def label_traces(self) -> float | None:
        """p under chance of what the released labels tell of the rows; None where there is nothing to read."""
        if self.labels is None or self.pool.labels is None or not len(self.pairs):
            return None
        rows, asked = self.pairs.T
        labels = self.pool.labels.cpu()[self.rows[rows]]
        raw = self.lineup.raw[rows].flatten(1)
        return label_traces(raw, labels, self.labels[asked], derive(self.seed, "labels"))

    def _released_again(self, made: list[Release]) -> Lineup:
        """Released rows by part; a row belongs to the group of the first raw row that it is declared to show."""
        groups: list[torch.Tensor] = []
        parts: list[torch.Tensor] = []
        for number, (rows, release) in enumerate(zip(self.members(), made, strict=True)):
            group = torch.arange(len(release)) + int(self.lineup.group.max()) + 1
            group += sum(len(other) for other in groups)
            if release.links is not None:
                links = release.links.cpu()
                group[links[:, 1].flip(0)] = self.lineup.group[rows][links[:, 0].flip(0)]
            groups.append(group)
            parts.append(torch.full((len(release),), number))
        return Lineup(torch.cat([each.samples.cpu() for each in made]), torch.cat(groups), torch.cat(parts))


def _some(rows: torch.Tensor, seed: int) -> torch.Tensor:
    return rows if len(rows) <= MOST else rows[torch.randperm(len(rows), generator=generator(seed))[:MOST]]
