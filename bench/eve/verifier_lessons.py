"""Lessons of the verifier: people's rows, own releases, and coordinates.

A raw row is described as it is, and as it looks when it is released: by the mean over releases of it under keys of
Eve's, the attacker's, own. The first needs no match of raw and released rows to be learned; the second knows what a
method does to every row. Relations in a release are described in the second way alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

import torch

from bench.eve.outliers import tamed
from bench.eve.readings import augmented
from bench.eve.verifier import FOLDS, Axes, Course, Entry, Pairs, Parts, Trained, principal_axes, train_heads
from bench.nets import linear_heads
from bench.progress import report
from bench.seeds import derive
from bench.types import Dataset

VIEWS = 3
"""Copies of an image that are learned from, itself among them."""
HELD_KEYS = 2
"""Keys of Eve's own that judge."""
Way = Literal["rows", "places", "bags"]
Describe: TypeAlias = "Callable[[torch.Tensor], Parts]"
Released: TypeAlias = "Sequence[tuple[torch.Tensor, torch.Tensor]]"
"""Released rows under keys of Eve's own, and the raw row in each."""


@dataclass(frozen=True, eq=False)
class Pool:
    """The rows that pairs are made of.

    Args:
        rows: n rows without names.
        people: (n,) int64, what a pair has in common: the person, or the image.
        same: True if a correct pair is an image and the row released of it.
        copies: True if pairs are an image and its augmented copy, for want of people with several images.
        words: Pairs in words for the record.
    """

    rows: Dataset
    people: torch.Tensor
    same: bool
    copies: bool
    words: str


@dataclass(frozen=True, eq=False)
class RowReading:
    """A description of rows, and how its axes are weighted.

    Args:
        name: In words for the record.
        way: "rows" if raw rows can be described like released ones.
        describe: Rows to features.
        power: Of the deviations by which coordinates are divided.
        trained: If heads are learned for it.
    """

    name: str
    way: Way
    describe: Describe
    power: float
    trained: bool = True


@dataclass(frozen=True, eq=False)
class Form:
    """A reading with the raw side that released rows are compared with.

    Args:
        way: Of the reading.
        describe: Of the reading.
        axes: Of its features.
        raw: (n, d) coordinates of the candidates.
        entries: Scores by these coordinates.
        trained: Their trainings.
    """

    way: Way
    describe: Describe
    axes: Axes
    raw: torch.Tensor
    entries: tuple[Entry, ...]
    trained: tuple[Trained, ...]


@dataclass(frozen=True, eq=False)
class Lessons:
    """All that heads are learned from.

    Args:
        candidates: The rows that Eve holds.
        pool: Rows with their people.
        simulated: Releases of the pool; the last `HELD_KEYS` are held out.
        own: Releases of the candidates.
        folds: (n,) int64, of the pool's rows.
        course: Of each training.
        seed: Of all.
    """

    candidates: Dataset
    pool: Pool
    simulated: Released
    own: Released
    folds: torch.Tensor
    course: Course
    seed: int

    @property
    def own_pairs(self) -> bool:
        """True if an image and its own released row are a pair."""
        return self.pool.same or self.pool.copies

    def of(self, reading: RowReading) -> Iterator[Form]:
        """The reading with raw rows as they are, and as released.

        Of the features of a release only coordinates are kept: a network's maps of many rows would fill the memory.
        """
        released = self._described(reading, self.simulated, "simulated key")
        own = released if self.own is self.simulated else self._described(reading, self.own, "key for the candidates")
        some = [next(released), next(released)]
        some_own = [] if own is released else [next(own)]
        axes = principal_axes([*some, *some_own], reading.power)
        views, plain = list[torch.Tensor](), axes
        if reading.way == "rows":
            plain, views, held = self._raw(reading)
        shown, plain_shown = list[torch.Tensor](), list[torch.Tensor]()
        for parts in chain(some, released):
            shown.append(axes(parts))
            plain_shown.append(plain(parts) if views else shown[-1])
        if views:
            yield self._as_is(reading, plain, views, held, plain_shown)
            first, made_of = self.simulated[0]
            if first.shape[1:] == self.pool.rows.samples.shape[1:] and torch.equal(
                first[:], self.pool.rows.samples[made_of]
            ):
                return
        own_shown = shown if own is released else [axes(parts) for parts in chain(some_own, own)]
        yield self._as_released(reading, axes, shown, own_shown)

    def _described(self, reading: RowReading, releases: Released, what: str) -> Iterator[Parts]:
        for number, (rows, _) in enumerate(releases):
            yield reading.describe(tamed(rows))
            report(f"verification, {reading.name}, {what}", number + 1, len(releases))

    def _raw(self, reading: RowReading) -> tuple[Axes, list[torch.Tensor], torch.Tensor]:
        """Axes of raw rows; coordinates of pool, its copies, and candidates."""
        samples = self.pool.rows.samples
        views = [reading.describe(samples)]
        if self._pretrains(reading) and samples.ndim == 4:
            views += [reading.describe(augmented(samples, derive(self.seed, "view", number)))
                      for number in range(1, VIEWS)]  # fmt: skip
        held = reading.describe(self.candidates.samples)
        axes = principal_axes([views[0], held], reading.power)
        return axes, [axes(each) for each in views], axes(held)

    def _pretrains(self, reading: RowReading) -> bool:
        return reading.trained and (not self.pool.same or self.pool.copies)

    def _as_is(
        self, reading: RowReading, axes: Axes, views: list[torch.Tensor], held: torch.Tensor,
        shown: Sequence[torch.Tensor],
    ) -> Form:  # fmt: skip
        pairs = [Pairs(views[0], rows, made_of) for rows, (_, made_of) in zip(shown, self.simulated, strict=True)]
        start, trained = self._untrained(held.shape[1], tied=True), list[Trained]()
        if self._pretrains(reading):
            every, own = torch.arange(len(views[0]), device=held.device), self.pool.copies
            plain = [Pairs(views[0], each, every) for each in (views[1:] if own else views)]
            if plain:
                trained.append(self._train(start, plain, plain[:1], reading.name, "raw rows of public people", own=own))
                start = tuple(heads.apart() for heads in trained[0].heads)
        return self._form(reading, reading.name, axes, held, pairs, start, trained)

    def _as_released(
        self, reading: RowReading, axes: Axes, shown: Sequence[torch.Tensor], own: Sequence[torch.Tensor]
    ) -> Form:
        n, many = len(self.pool.rows), len(self.simulated)
        by_row = [_by_row(rows, made_of, n) for rows, (_, made_of) in zip(shown, self.simulated, strict=True)]
        total = sum(by_row[1:], by_row[0])
        pairs = [
            Pairs((total - mine) / (many - 1), rows, made_of)
            for mine, rows, (_, made_of) in zip(by_row, shown, self.simulated, strict=True)
        ]
        held = total / many
        if self.own is not self.simulated:
            each = [_by_row(rows, made_of, len(self.candidates))
                    for rows, (_, made_of) in zip(own, self.own, strict=True)]  # fmt: skip
            held = sum(each[1:], each[0]) / len(each)
        name = reading.name if reading.way != "rows" else f"{reading.name}, raw rows as released"
        return self._form(reading, name, axes, held, pairs, self._untrained(held.shape[1], tied=False), [])

    def _form(
        self, reading: RowReading, name: str, axes: Axes, held: torch.Tensor, pairs: list[Pairs],
        start: tuple[linear_heads.Heads, ...], trained: list[Trained],
    ) -> Form:  # fmt: skip
        judged = pairs[-HELD_KEYS:]
        entries = [Entry(f"{name}, not trained", self._untrained(held.shape[1], tied=False), judged)]
        if reading.trained:
            if trained:
                entries.append(Entry(f"{name}, trained on raw rows", start, judged))
            what = "rows released under own keys"
            trained.append(self._train(start, pairs[:-HELD_KEYS], judged, name, what, own=self.own_pairs))
            entries.append(Entry(f"{name}, trained", trained[-1].heads, judged))
        return Form(reading.way, reading.describe, axes, held, tuple(entries), tuple(trained))

    def _untrained(self, d: int, *, tied: bool) -> tuple[linear_heads.Heads, ...]:
        device = self.pool.people.device
        return tuple(linear_heads.Heads(d, tied=tied).to(device) for _ in range(FOLDS))

    def _train(
        self, start: Sequence[linear_heads.Heads], keys: list[Pairs], held: list[Pairs], name: str, what: str, *,
        own: bool,
    ) -> Trained:  # fmt: skip
        return train_heads(
            start, keys, held, self.pool.people, folds=self.folds, own=own, course=self.course,
            seed=derive(self.seed, what), part=f"{name}, {what}",
        )  # fmt: skip


def _by_row(rows: torch.Tensor, made_of: torch.Tensor, n: int) -> torch.Tensor:
    """Mean coordinates (n, d) of released rows by raw row; else 0."""
    share = torch.bincount(made_of, minlength=n).clamp_min(1).to(rows.dtype)[:, None]
    return rows.new_zeros(n, rows.shape[1]).index_add_(0, made_of, rows) / share
