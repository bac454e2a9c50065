"""Inputs of an audit: pairs a claim must hide; no private rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from bench.contract.mechanism import Mechanism
from bench.seeds import derive, generator
from bench.types import Dataset, PrivacyClaim

GREYS = 0.0718281828, 0.9141592653  # on no usual grid


@dataclass(frozen=True, eq=False)
class Pair:
    """Two inputs, one row each, that the claim must hide."""

    name: str
    first: Dataset
    second: Dataset


def input_pairs(mechanism: Mechanism | None, claim: PrivacyClaim, public: Dataset) -> list[Pair]:
    """The mechanism's witnesses, then pairs that any method must hide.

    Pairs of a claim per pixel differ in one pixel.

    Both inputs of a pair have the same labels, which are outside every claim, and no subjects.
    """
    witnesses = () if mechanism is None else mechanism.witnesses(public)
    pairs = [Pair(f"witness {number}", *pair) for number, pair in enumerate(witnesses, 1)]
    candidates = (
        _one_pixel(public) if claim.unit == "pixel" else [_like(witnesses, pair) for pair in _whole_rows(public)]
    )
    for pair in candidates:
        if not _none(pair) and not any(_same(pair, other) for other in pairs):
            pairs.append(pair)
    return [
        Pair(pair.name, replace(pair.first, subjects=None),
             replace(pair.second, subjects=None, labels=pair.first.labels))
        for pair in pairs
    ]  # fmt: skip


def usual(public: Dataset) -> Dataset:
    """The first public row with all labels known, else the first."""
    if public.labels is None:
        return public.take(torch.zeros(1, dtype=torch.int64, device=public.samples.device))
    return public.take(public.labels.isfinite().all(dim=1).int().argmax()[None])


def _same(one: Pair, other: Pair) -> bool:
    """True if both pairs have the same rows, labels aside."""
    return torch.equal(one.first.samples, other.first.samples) and torch.equal(one.second.samples, other.second.samples)


def _none(pair: Pair) -> bool:
    """True if both rows are equal."""
    return torch.equal(pair.first.samples, pair.second.samples)


def _like(witnesses: Sequence[tuple[Dataset, Dataset]], pair: Pair) -> Pair:
    """The pair, made equal in table columns outside the claim."""
    if not witnesses or pair.first.samples.ndim != 2:
        return pair
    differ = torch.cat([first.samples != second.samples for first, second in witnesses]).any(dim=0)
    samples = torch.where(differ, pair.second.samples, pair.first.samples)
    return replace(pair, second=replace(pair.second, samples=samples))


def _one_pixel(public: Dataset) -> list[Pair]:
    """Pairs of an ordinary image with one pixel dark or bright.

    The middle one and two corners; `PixelPlay` covers all others. A pixel of an otherwise flat image shows noise that
    is scaled by the image's own range.
    """
    row = usual(public)
    h, w = row.samples.shape[-2:]
    flat = replace(row, samples=torch.zeros_like(row.samples))
    places = (
        ("middle pixel", row, h // 2, w // 2),
        ("first pixel", row, 0, 0),
        ("last pixel", row, h - 1, w - 1),
        ("middle pixel of a dark image", flat, h // 2, w // 2),
    )
    ends = [
        Pair(f"{name} dark, bright", _with_pixel(base, at, across, 0), _with_pixel(base, at, across, 1))
        for name, base, at, across in places
    ]
    greys = (_with_pixel(row, h // 2, w // 2, grey) for grey in GREYS)
    return [*ends, Pair("middle pixel of two greys", *greys)]


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
    named: tuple[tuple[str, torch.Tensor, torch.Tensor], ...] = (
        (extremes, least, greatest),
        ("opposite corners", torch.where(coins, least, greatest), torch.where(coins, greatest, least)),
        ("rows of random numbers", least + shares[0] * (greatest - least), least + shares[1] * (greatest - least)),
        (column, changed[0].view(shape), changed[1].view(shape)),
        ("a flat row, one of full range", middle.view(shape), wide.view(shape)),
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
