"""Inputs and plays of a distinguishing game: pairs, coins, and releases.

A coin decides which of two inputs a row is. A set of rows, each with a coin of its own, is released under one key: a
claim that holds for every row holds for every coin, for any dependence between rows (Steinke et al. 2023, theorem 5.1).
Only the coins' rows differ between the inputs of a game; other rows are known, and the same for both. Layouts differ in
how noise could be shared or missing. Pairs of inputs hold no private rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import torch

from bench.contract.mechanism import Mechanism
from bench.contract.seal import check
from bench.evidence import Calls
from bench.progress import report
from bench.randomness import Secret
from bench.seeds import derive, generator
from bench.types import Dataset, Key, NotApplicable, PrivacyClaim, Release, Scheme

if TYPE_CHECKING:
    from numpy.typing import NDArray

Coins: TypeAlias = "NDArray[np.bool_]"
Values: TypeAlias = "NDArray[np.float64]"
NUMBERS = 2**20  # released numbers that are held at once
SET = 4  # rows a key
ONE_BY_ONE = 1000  # most releases of a half if each is a call of its own

Layout = Literal[
    "in sets", "alone", "beside its twin", "before a second release", "in pairs", "in crowds", "in large crowds"
]
SIZES: Mapping[Layout, int] = {"in pairs": 2, "in crowds": 64, "in large crowds": 512}
"""Rows a key; `SET` in other layouts, 1 if rows are alone."""


@dataclass(frozen=True, eq=False)
class Tosses:
    """Coins (k,), True for the first input, and releases made of them.

    `beside` are rows to compare with: the twin, the same place of a second release, or the mean of the other rows
    under the key.
    """

    first: torch.Tensor
    release: Release
    beside: torch.Tensor | None = None
    key: torch.Tensor | None = None

    @property
    def keys(self) -> torch.Tensor:
        """Numbers (k,) int64 of the coins' keys."""
        return torch.arange(len(self.first)) if self.key is None else self.key


@dataclass(frozen=True, eq=False)
class Statistic:
    """A number (k,) float64 per coin that may reveal it.

    `rare` statistics are 0 unless sound noise did something next to impossible.
    """

    name: str
    of: Callable[[Tosses], torch.Tensor]
    rare: bool = False


class Play(ABC):
    """A game that can be played any number of times."""

    name: str
    known: int = 0
    """Releases to learn from, if more than usual."""
    size: int = 1
    """Rows or images under a key."""
    single: bool = False
    """True if every coin has a key of its own, so that `ONE_BY_ONE` coins are counted at most."""

    @abstractmethod
    def toss(self, count: int, purpose: str) -> Iterator[Tosses]:
        """Releases of about `count` rows or images under keys for `purpose`."""

    @abstractmethod
    def learn(self, seen: Tosses, spare: Tosses) -> list[Statistic]:
        """Statistics learned from `seen`; a classifier of them from `spare`."""


@dataclass(frozen=True, eq=False)
class Owner:
    """An audit's releasing side; `single` releases hold one coin, others `size`."""

    scheme: Scheme
    secret: Secret
    single: bool = False
    size: int = SET

    def coins(self, count: int, purpose: str) -> torch.Tensor:
        """(count,) bool, fair."""
        return self.secret.stream(purpose, "coins").integers(2, count).bool()

    def key(self, purpose: str, number: int) -> Key:
        """A key that is used for nothing else."""
        return self.scheme.sample_key(self.secret.derive(purpose, number))


@dataclass(frozen=True, eq=False)
class RowPlay(Play):
    """Rows of a pair in a layout."""

    owner: Owner
    pair: Pair
    layout: Layout
    learners: Callable[[RowPlay, Tosses, Tosses], list[Statistic]]
    known: int = 0
    rows: int | None = None
    """Rows a key; None for those of the layout."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """The pair and the layout."""
        if self.rows is not None:
            return f"{self.pair.name}, {self.rows} rows together"
        return f"{self.pair.name}, {self.layout}{', noise compared' if self.known else ''}"

    @property
    def single(self) -> bool:  # type: ignore[override]
        """True if every coin has a key of its own."""
        return self.layout == "alone" or self.owner.single

    @property
    def size(self) -> int:  # type: ignore[override]
        """Coins under a key."""
        if self.single:
            return 1
        if self.rows is not None:
            return self.rows
        size = SIZES.get(self.layout, SET) if self.owner.size == SET else self.owner.size
        return size // 2 if self.layout == "beside its twin" and size > SET else size  # two rows a coin

    def learn(self, seen: Tosses, spare: Tosses) -> list[Statistic]:
        """Statistics of `bench.audit.leak_statistics`."""
        return self.learners(self, seen, spare)

    def toss(self, count: int, purpose: str) -> Iterator[Tosses]:
        """`count` coins, or as many more as fill the last set."""
        size = self.size
        first = self.owner.coins(min(count, ONE_BY_ONE) if self.single else -(-count // size) * size, purpose)
        yield from gathered(self._sets(first, size, purpose))

    def _sets(self, first: torch.Tensor, per: int, purpose: str) -> Iterator[Tosses]:
        for start in range(0, len(first), per):
            report(purpose, start, len(first))
            part = first[start : start + per]
            yield replace(self._released(part, self.owner.key(purpose, start)), key=torch.full((len(part),), start))

    def _released(self, first: torch.Tensor, key: Key) -> Tosses:
        rows = 1 - first.long().to(self.pair.first.samples.device)
        if self.layout == "beside its twin":
            mixed = torch.stack((torch.zeros_like(rows), rows), dim=1).flatten()
            whole = released(key, self._three.take(mixed))
            return Tosses(first, _part(whole, slice(1, None, 2)), whole.samples[::2])
        release = released(key, self._three.take(rows))
        if self.layout == "before a second release":
            return Tosses(first, release, released(key, self._three.take(torch.full_like(rows, 2))).samples)
        if len(rows) == 1:
            return Tosses(first, release)
        others = (release.samples.sum(dim=0, keepdim=True) - release.samples) / (len(rows) - 1)
        return Tosses(first, release, others)

    @property
    def _three(self) -> Dataset:
        """First, second, and the row halfway between."""
        first, second = self.pair.first, self.pair.second
        samples = torch.cat((first.samples, second.samples, (first.samples + second.samples) / 2))
        labels = None if first.labels is None else first.labels.expand(3, -1)
        return replace(first, samples=samples, labels=labels)


def released(key: Key, rows: Dataset) -> Release:
    """An unlinked release whose row i is raw row i; NotApplicable otherwise."""
    release = key.release(rows)
    check(release, rows)
    if len(release) != len(rows) or release.links is None or len(release.links) != len(rows):
        raise NotApplicable(
            f"this game needs a released row for every raw one: {len(rows)} rows gave {len(release)} with "
            f"{0 if release.links is None else len(release.links)} links"
        )
    order = release.links[release.links[:, 0].argsort(), 1]
    return _part(release, order)


def _part(release: Release, rows: slice | torch.Tensor) -> Release:
    labels = None if release.labels is None else release.labels[rows]
    return Release(release.samples[rows], labels, None)


def joined(parts: Sequence[Tosses]) -> Tosses:
    """All tosses together."""
    labels = [part.release.labels for part in parts if part.release.labels is not None]
    beside = [part.beside for part in parts if part.beside is not None]
    return Tosses(
        torch.cat([part.first for part in parts]),
        Release(torch.cat([part.release.samples for part in parts]), torch.cat(labels) if labels else None, None),
        torch.cat(beside) if len(beside) == len(parts) else None,
        torch.cat([part.keys for part in parts]),
    )


def gathered(parts: Iterable[Tosses]) -> Iterator[Tosses]:
    """The same tosses in batches of at least `NUMBERS` released numbers."""
    batch: list[Tosses] = []
    size = 0
    for part in parts:
        batch.append(part)
        size += part.release.samples.numel()
        if size >= NUMBERS:
            yield joined(batch)
            batch, size = [], 0
    if batch:
        yield joined(batch)


MOST = 4 * NUMBERS  # released numbers of a half
TINY = 1e-6


@dataclass(frozen=True, eq=False)
class PixelPlay(Play):
    """Images with a coin per pixel; `row` gives shape and labels."""

    owner: Owner
    row: Dataset

    name = "every pixel dark or bright"

    @property
    def size(self) -> int:  # type: ignore[override]
        """Images under a key."""
        return self.owner.size

    def toss(self, count: int, purpose: str) -> Iterator[Tosses]:
        """`count` images, fewer if they are large."""
        shape = self.row.samples.shape[1:]
        count = max(8, min(count, MOST // shape.numel()))
        first = self.owner.coins(count * shape[1] * shape[2], purpose).view(count, 1, *shape[1:])
        yield from gathered(self._sets(first, purpose))

    def _sets(self, first: torch.Tensor, purpose: str) -> Iterator[Tosses]:
        channels = self.row.samples.shape[1]
        for start in range(0, len(first), self.owner.size):
            report(purpose, start, len(first))
            part = first[start : start + self.owner.size]
            samples = (~part).float().expand(-1, channels, -1, -1).contiguous().to(self.row.samples)
            labels = None if self.row.labels is None else self.row.labels.expand(len(part), -1)
            rows = replace(self.row, samples=samples, labels=labels, subjects=None)
            release = released(self.owner.key(purpose, start), rows)
            if release.samples.shape[2:] != samples.shape[2:]:
                raise NotApplicable("a released image has another size than the raw one")
            yield Tosses(part.flatten(), release, key=torch.full((part.numel(),), start))

    def learn(self, seen: Tosses, spare: Tosses) -> list[Statistic]:
        """Pixel values, alone and minus the image mean; nearness to the inputs."""
        return [
            pixel_discriminant("pixel discriminant", seen, centred=False),
            pixel_discriminant("pixel discriminant beside the image's mean", seen, centred=True),
            Statistic("nearness of a pixel", _nearness),
        ]


def pixel_discriminant(name: str, training: Tosses, *, centred: bool) -> Statistic:
    """Discriminant by pixel: channels' sum of (number - middle) gap / variance."""
    rows = _rows(training, centred=centred)
    first = _coins(training, rows)
    share = first.double().sum(dim=0).clamp_min(1), (~first).double().sum(dim=0).clamp_min(1)
    means = [(rows * side).sum(dim=0) / count for side, count in zip((first, ~first), share, strict=True)]
    gap, middle = means[0] - means[1], (means[0] + means[1]) / 2
    within = rows - torch.where(first, means[0], means[1])
    spread = torch.maximum(within.square().mean(dim=0).sqrt(), TINY * gap.abs())
    weights = torch.where(spread > 0, gap / torch.where(spread > 0, spread, 1.0).square(), 0.0)
    return Statistic(name, lambda tosses: ((_rows(tosses, centred=centred) - middle) * weights).sum(dim=1).flatten())


def _nearness(tosses: Tosses) -> torch.Tensor:
    """Log ratio of a pixel's distances to 1 (second) and 0 (first)."""
    rows = tosses.release.samples.double()
    gaps = [(rows - end).abs().amin(dim=1) + TINY for end in (0.0, 1.0)]
    return (gaps[1].log() - gaps[0].log()).flatten()


def _rows(tosses: Tosses, *, centred: bool) -> torch.Tensor:
    rows = tosses.release.samples.double()
    return rows - rows.mean(dim=(2, 3), keepdim=True) if centred else rows


def _coins(tosses: Tosses, rows: torch.Tensor) -> torch.Tensor:
    """(images, 1, h, w) bool."""
    return tosses.first.to(rows.device).view(len(rows), 1, *rows.shape[2:])


GREYS = 0.0718281828, 0.7390851332  # on no usual grid, and apart by no multiple of one


@dataclass(frozen=True, eq=False)
class Pair:
    """Two inputs, one row each, that the claim must hide."""

    name: str
    first: Dataset
    second: Dataset


def input_pairs(mechanism: Mechanism | None, claim: PrivacyClaim, public: Dataset) -> list[Pair]:
    """The mechanism's witnesses, then pairs that any method must hide.

    Pairs of a claim per pixel differ in one pixel. Both inputs have the same labels, and no subjects.
    """
    witnesses = () if mechanism is None else mechanism.witnesses(public)
    pairs = [Pair(f"witness {number}", *pair) for number, pair in enumerate(witnesses, 1)]
    candidates = (
        _one_pixel(public) if claim.unit == "pixel" else [_like(witnesses, pair) for pair in _whole_rows(public)]
    )
    for pair in candidates:
        if not torch.equal(pair.first.samples, pair.second.samples) and not any(_same(pair, other) for other in pairs):
            pairs.append(pair)
    return [
        Pair(pair.name, replace(pair.first, subjects=None),
             replace(pair.second, subjects=None, labels=pair.first.labels))
        for pair in pairs
    ]  # fmt: skip


def pairs_of_row(
    mechanism: Mechanism | None, claim: PrivacyClaim, public: Dataset, samples: torch.Tensor, name: str
) -> list[Pair]:
    """Pairs of a row (1, ...) that the claim must hide."""
    known = usual(public)
    row = replace(known, samples=samples, subjects=None)
    if claim.unit == "pixel":
        kind = "one pixel changed"
        places = {(0, 0), (samples.shape[-2] // 2, samples.shape[-1] // 2)}
        others = [
            _with_pixel(row, at, across, 1 - float(samples[..., at, across].mean().round()))
            for at, across in sorted(places)
        ]
    else:
        kind, others = "a public row", [replace(row, samples=known.samples)]
    witnesses = () if mechanism is None else mechanism.witnesses(public)
    return [_like(witnesses, Pair(f"{name}, {kind}", row, other)) for other in others]


def usual(public: Dataset) -> Dataset:
    """The first public row with all labels known, else the first."""
    if public.labels is None:
        return public.take(torch.zeros(1, dtype=torch.int64, device=public.samples.device))
    return public.take(public.labels.isfinite().all(dim=1).int().argmax()[None])


def _same(one: Pair, other: Pair) -> bool:
    """True if both pairs have the same rows, labels aside."""
    return torch.equal(one.first.samples, other.first.samples) and torch.equal(one.second.samples, other.second.samples)


def _like(witnesses: Sequence[tuple[Dataset, Dataset]], pair: Pair) -> Pair:
    """The pair, made equal in table columns outside the claim."""
    if not witnesses or pair.first.samples.ndim != 2:
        return pair
    differ = torch.cat([first.samples != second.samples for first, second in witnesses]).any(dim=0)
    samples = torch.where(differ, pair.second.samples, pair.first.samples)
    return replace(pair, second=replace(pair.second, samples=samples))


def _one_pixel(public: Dataset) -> list[Pair]:
    """Pairs of an image with one pixel dark or bright.

    A pixel of an otherwise flat image shows noise that is scaled by the image's own range.
    """
    row = usual(public)
    h, w = row.samples.shape[-2:]
    flat = replace(row, samples=torch.zeros_like(row.samples))
    places = (
        ("middle pixel", row, h // 2, w // 2),
        ("first pixel", row, 0, 0),
        ("last pixel", row, h - 1, w - 1),
        ("middle pixel of a dark image", flat, h // 2, w // 2),
        ("middle pixel of a mid-grey image", replace(row, samples=torch.full_like(row.samples, 0.5)), h // 2, w // 2),
        ("middle pixel of a bright image", replace(row, samples=torch.ones_like(row.samples)), h // 2, w // 2),
    )
    ends = [
        Pair(f"{name} dark, bright", _with_pixel(base, at, across, 0), _with_pixel(base, at, across, 1))
        for name, base, at, across in places
    ]
    greys = (_with_pixel(row, h // 2, w // 2, grey) for grey in GREYS)
    mid = _with_pixel(row, h // 2, w // 2, 0.5), _with_pixel(row, h // 2, w // 2, 1)
    return [*ends, Pair("middle pixel of two greys", *greys), Pair("middle pixel mid-grey, bright", *mid)]


def _with_pixel(base: Dataset, at: int, across: int, value: float) -> Dataset:
    samples = base.samples.clone()
    samples[..., at, across] = value
    return replace(base, samples=samples)


def _whole_rows(public: Dataset) -> list[Pair]:
    """Pairs of whole rows: extremes, corners, far apart, random, one column, flat."""
    row, samples = usual(public), public.samples
    if samples.ndim == 4:
        least, greatest = torch.zeros_like(row.samples), torch.ones_like(row.samples)
        extremes, column = "all dark, all bright", "first pixel dark, bright"
    else:
        least, greatest = samples.amin(dim=0, keepdim=True), samples.amax(dim=0, keepdim=True)
        extremes, column = "least, greatest of every column", "least, greatest of the first column"
    random = generator(derive(0, "audit inputs"))
    shape = row.samples.shape
    coins = torch.randint(2, shape, generator=random).bool().to(samples.device)
    shares = [torch.rand(shape, generator=random).to(samples) for _ in range(2)]
    changed = [row.samples.clone().flatten(1), row.samples.clone().flatten(1)]
    for side, end in zip(changed, (least, greatest), strict=True):
        side[:, 0] = end.flatten(1)[:, 0]
    middle = ((least + greatest) / 2).flatten(1)
    wide = middle.clone()
    wide[:, 0], wide[:, -1] = least.flatten(1)[:, 0], greatest.flatten(1)[:, -1]
    halves = (torch.arange(middle.shape[1], device=samples.device) < middle.shape[1] // 2).view(shape)
    named: tuple[tuple[str, torch.Tensor, torch.Tensor], ...] = (
        (extremes, least, greatest),
        ("opposite corners", torch.where(coins, least, greatest), torch.where(coins, greatest, least)),
        ("rows of random numbers", least + shares[0] * (greatest - least), least + shares[1] * (greatest - least)),
        (column, changed[0].view(shape), changed[1].view(shape)),
        ("a flat row, one of full range", middle.view(shape), wide.view(shape)),
        ("flat rows, low and middle", least + (greatest - least) / 4, (least + greatest) / 2),
        ("flat rows, high and highest", greatest - (greatest - least) / 4, greatest),
        ("a public row, its negative", row.samples, least + greatest - row.samples),
        ("halves dark and bright", torch.where(halves, least, greatest), torch.where(halves, greatest, least)),
    )
    pairs = [Pair(name, replace(row, samples=first), replace(row, samples=second)) for name, first, second in named]
    return [pairs[0], _far_apart(public), *pairs[1:]]


def _far_apart(public: Dataset) -> Pair:
    """The row farthest from the mean, and the row farthest from it."""
    first = _farthest(public.samples, public.samples.mean(dim=0, keepdim=True))
    second = _farthest(public.samples, public.samples[first])
    return Pair("public rows far apart", public.take(first), public.take(second))


def _farthest(samples: torch.Tensor, point: torch.Tensor) -> torch.Tensor:
    return torch.cdist(samples.flatten(1), point.flatten(1), p=1).argmax(dim=0)


def decisions(coins: Coins, above: Coins, below: Coins) -> Calls:
    """Counts of coins (k,) called first, and of those called second."""
    hits, misses = int((above & coins).sum()), int((below & coins).sum())
    return Calls(len(coins), int(coins.sum()), hits, int(above.sum()) - hits, misses, int(below.sum()) - misses)


def clearest(coins: Coins, values: Values, highest: int, lowest: int) -> Calls:
    """`decisions` that call the highest values first and the lowest second."""
    order = values.argsort(kind="stable")
    above, below = np.zeros(len(coins), dtype=np.bool_), np.zeros(len(coins), dtype=np.bool_)
    above[order[len(order) - highest :]], below[order[:lowest]] = True, True
    return decisions(coins, above, below)
