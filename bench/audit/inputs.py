"""The inputs of an audit: pairs that a claim must hide from each other, made without any private row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bench.contract.mechanism import Mechanism
from bench.types import Dataset, PrivacyClaim


@dataclass(frozen=True, eq=False)
class Pair:
    """Two inputs that the claim must hide from each other, one row each."""

    name: str
    first: Dataset
    second: Dataset

    def swapped(self) -> Pair:
        """The same two the other way round."""
        return replace(self, first=self.second, second=self.first)


def input_pairs(mechanism: Mechanism | None, claim: PrivacyClaim, public: Dataset) -> list[Pair]:
    """The mechanism's witnesses, then pairs that any method must hide; those of a claim per pixel differ in one pixel.

    Both inputs of a pair have the same labels, which are outside every claim, and no subjects.
    """
    witnesses = () if mechanism is None else mechanism.witnesses(public)
    found = [Pair(f"witness {number}", *pair) for number, pair in enumerate(witnesses, 1)]
    if claim.unit == "pixel":
        made = [_one_pixel(public)]
    else:
        made = [_like(witnesses, pair) for pair in (_extremes(public), _far_apart(public))]
    found += [pair for pair in made if not any(_same(pair, witness) for witness in found)]
    return [
        Pair(pair.name, replace(pair.first, subjects=None),
             replace(pair.second, subjects=None, labels=pair.first.labels))
        for pair in found
    ]  # fmt: skip


def _same(one: Pair, other: Pair) -> bool:
    """Whether both have the same two rows, labels aside; trials are better spent on others."""
    return torch.equal(one.first.samples, other.first.samples) and torch.equal(one.second.samples, other.second.samples)


def _like(witnesses: Sequence[tuple[Dataset, Dataset]], pair: Pair) -> Pair:
    """The pair with one value in those columns of a table that no witnesses differ in: they are outside the claim."""
    if not witnesses or pair.first.samples.ndim != 2:
        return pair
    differ = torch.cat([first.samples != second.samples for first, second in witnesses]).any(dim=0)
    samples = torch.where(differ, pair.second.samples, pair.first.samples)
    return replace(pair, second=replace(pair.second, samples=samples))


def _usual(public: Dataset) -> Dataset:
    """The first public row whose labels are all known, if there is one."""
    if public.labels is None:
        return public.take(torch.zeros(1, dtype=torch.int64, device=public.samples.device))
    return public.take(public.labels.isfinite().all(dim=1).int().argmax()[None])


def _one_pixel(public: Dataset) -> Pair:
    usual = _usual(public)
    dark, bright = usual.samples.clone(), usual.samples.clone()
    row, column = dark.shape[-2] // 2, dark.shape[-1] // 2
    dark[..., row, column], bright[..., row, column] = 0, 1
    return Pair("middle pixel dark, bright", replace(usual, samples=dark), replace(usual, samples=bright))


def _extremes(public: Dataset) -> Pair:
    usual, samples = _usual(public), public.samples
    if samples.ndim == 4:
        dark, bright = torch.zeros_like(usual.samples), torch.ones_like(usual.samples)
        return Pair("all dark, all bright", replace(usual, samples=dark), replace(usual, samples=bright))
    least, greatest = samples.amin(dim=0, keepdim=True), samples.amax(dim=0, keepdim=True)
    return Pair("least, greatest of every column", replace(usual, samples=least), replace(usual, samples=greatest))


def _far_apart(public: Dataset) -> Pair:
    """The row farthest from the mean and the row farthest from that one: all pairs would be too many to look at."""
    first = _farthest(public.samples, public.samples.mean(dim=0, keepdim=True))
    second = _farthest(public.samples, public.samples[first])
    return Pair("public rows far apart", public.take(first), public.take(second))


def _farthest(samples: Tensor, point: Tensor) -> Tensor:
    return torch.cdist(samples.flatten(1), point.flatten(1), p=1).argmax(dim=0)
