"""Search for inputs and numbers of rows that open a fault.

Source: dp-auditorium (Kong et al. 2023, DP-Auditorium: a large scale library for auditing differential privacy), whose
property testers search the data sets that separate a mechanism's outputs most. A list of inputs misses a fault that
opens in a narrow band of brightness, by one pixel, or for one number of rows.

Every input is released under two keys. If both releases are nearly equal, compared with those of other inputs, its
noise is small or missing. Inputs start as a coverage of flat rows, single pixels, halves, ranges, random and public
rows; those that stand out are mutated and crossed. What stands out again under fresh keys becomes a game, whose test is
chosen and counted as any other's, on other releases. So a search can add a game, and refutes nothing by itself.

Difference: dp-auditorium searches by a divergence of many outputs an input; here two releases of many inputs serve,
because faults that open for an input usually give it away at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from bench.audit.game_plays import Owner
from bench.progress import stage
from bench.seeds import derive, generator
from bench.types import Dataset

TOGETHER = 64  # inputs of a release
MOST_NUMBERS = 1 << 20  # released numbers of a search of inputs, and of one of sizes
MOST_ROWS = 128  # of a release
GREYS, RANDOM, PLACES, LEVELS = 256, 64, 256, 9
PARENTS, GENERATIONS = 16, 3
FEW = 4  # inputs and sizes that are tried again
OUTSTANDING = 6.0  # robust deviations from other inputs
LEAST_INPUTS, LEAST_SIZES = 32, 8  # to tell what stands out
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class Found:
    """Rows (k, ...) and numbers of rows that stood out twice.

    `budget` says what was searched, for the record.
    """

    rows: torch.Tensor
    sizes: tuple[int, ...]
    budget: str


def search(owner: Owner, row: Dataset, public: Dataset, *, trials: int, rows: bool, sizes: bool) -> Found:
    """Inputs and numbers of rows with less noise than others.

    Args:
        owner: Releases under keys that are used for nothing else.
        row: One row, with the labels of all inputs.
        public: Rows that inputs are made of.
        trials: Releases of a half of the audit; a half of them are searched at most.
        rows, sizes: What may be searched: inputs beside each other in a release, numbers of rows.
    """
    stage("search inputs")
    numbers = row.samples.numel()
    inputs = min(trials // 2, MOST_NUMBERS // (2 * numbers)) if rows else 0
    found = row.samples[:0]
    if inputs >= LEAST_INPUTS:
        found = _rows(owner, row, public, inputs)
    else:
        inputs = 0
    most = min(MOST_ROWS, trials // 8, int((MOST_NUMBERS / numbers) ** 0.5)) if sizes else 0
    counts: tuple[int, ...] = ()
    if most >= LEAST_SIZES:
        counts = _sizes(owner, row, most)
    else:
        most = 0
    budget = f"up to {inputs:,} inputs and releases of 1 to {most} rows, each under two keys"
    return Found(found, counts, budget if inputs or most else "nothing")


def _rows(owner: Owner, row: Dataset, public: Dataset, count: int) -> torch.Tensor:
    """Up to two rows that stand out twice."""
    random = generator(derive(0, "searched inputs"))
    usual = born = _thinned(torch.cat(list(_coverage(row, public, random))), count - count // 4)
    everyone, scores = born[:0], torch.zeros(0, dtype=torch.float64)
    for age in range(GENERATIONS + 1):
        everyone = torch.cat((everyone, born))
        scores = torch.cat((scores, _closeness(owner, row, born, f"search {age}")))
        left = (count - len(everyone)) // max(1, GENERATIONS - age)
        if left <= 0 or _outstanding(scores).any():  # children of an input that gives itself away do so too
            break
        born = _children(everyone[scores.argsort(descending=True)[:PARENTS]], left, row, public, random)
    best = scores.argsort(descending=True)[:FEW]
    # Other inputs say again what is usual.
    again = _closeness(owner, row, torch.cat((everyone[best], _thinned(usual, LEAST_INPUTS))), "search again")
    return everyone[best[_outstanding(scores)[best] & _outstanding(again)[: len(best)]][:2]]


def _sizes(owner: Owner, row: Dataset, most: int) -> tuple[int, ...]:
    """Up to two numbers of rows that stand out twice."""
    whole = list(range(1, most + 1))

    def closeness(purpose: str, sizes: list[int]) -> torch.Tensor:
        return torch.stack(
            [_closeness(owner, row, row.samples.expand(size, *row.samples.shape[1:]), f"{purpose} {size}", size).mean()
             for size in sizes]
        )  # fmt: skip

    scores = closeness("search size", whole)
    # Means of few rows vary more than those of many.
    spread = torch.tensor(whole, dtype=torch.float64).sqrt()
    best = ((scores - scores.median()) * spread).argsort(descending=True)[:FEW].tolist()
    again = closeness("search size again", [whole[place] for place in best])
    middle = scores.median()
    limit = OUTSTANDING * _deviation((scores - middle) * spread)
    return tuple(
        whole[place] for place, once_more in zip(best, again, strict=True)
        if min(scores[place], once_more) - middle > limit / spread[place]
    )[:2]  # fmt: skip


def _closeness(owner: Owner, row: Dataset, rows: torch.Tensor, purpose: str, together: int = TOGETHER) -> torch.Tensor:
    """(k,) mean log nearness of two releases of each row.

    The nearest number of a row counts too, for a fault may give one number away.
    """
    parts = []
    for number, part in enumerate(torch.split(rows, together)):
        data = _dataset(row, part)
        first, second = (owner.key(f"{purpose} {side}", number).release(data) for side in ("one", "two"))
        # Links name the released row of every raw one.
        one, two = (
            release.samples if release.links is None or len(release.links) != len(part)
            else release.samples[release.links[release.links[:, 0].argsort(), 1]]
            for release in (first, second)
        )  # fmt: skip
        if len(one) != len(part) or one.shape != two.shape:
            return torch.zeros(len(rows), dtype=torch.float64)
        parts.append((one.flatten(1).double() - two.flatten(1).double()).abs().cpu())
    gaps = torch.cat(parts)
    near = -(gaps + TINY * gaps.median().clamp_min(TINY)).log()
    most = near.amax(dim=1) / near.shape[1] ** 0.5 if near.shape[1] > 1 else 0.0
    return near.mean(dim=1) + most


def _dataset(row: Dataset, samples: torch.Tensor) -> Dataset:
    labels = None if row.labels is None else row.labels.expand(len(samples), -1)
    return replace(row, samples=samples, labels=labels, subjects=None)


def _outstanding(scores: torch.Tensor) -> torch.Tensor:
    """(k,) bool: far above the median, in robust deviations."""
    return scores - scores.median() > OUTSTANDING * _deviation(scores)


def _deviation(values: torch.Tensor) -> float:
    """1.4826 median absolute deviations, a standard deviation of normal values."""
    return max(1.4826 * float((values - values.median()).abs().median()), TINY)


def _coverage(row: Dataset, public: Dataset, random: torch.Generator) -> Iterator[torch.Tensor]:
    """Rows (k, ...) of every kind, within the range."""
    samples = row.samples
    low, high = _ends(row, public)
    shape, numbers = samples.shape[1:], samples[0].numel()

    def share(count: int, *more: int) -> torch.Tensor:
        return torch.rand(count, *(more or shape), generator=random).to(samples)

    def between(part: torch.Tensor) -> torch.Tensor:
        return low + part * (high - low)

    ones = [1] * len(shape)
    greys = (torch.arange(GREYS).to(samples) + share(GREYS, 1)[:, 0]) / GREYS
    yield between(greys.view(-1, *ones).expand(-1, *shape))
    places = torch.randperm(numbers, generator=random)[:PLACES]
    for base, dot in ((0.0, 1.0), (1.0, 0.0), (0.5, 1.0), (0.5, 0.0)):
        dots = torch.full((len(places), numbers), base).to(samples)
        dots[torch.arange(len(places)), places] = dot
        yield between(dots.view(-1, *shape))
    for axis in range(1, len(shape) + 1) if len(shape) > 1 else ():
        order = torch.arange(samples.shape[axis]).view([-1 if axis == other else 1 for other in range(1, samples.ndim)])
        for part in range(1, LEVELS):
            edge = (order >= part * samples.shape[axis] / LEVELS).to(samples).expand(shape)
            yield between(torch.stack((edge, 1 - edge)))
    levels = torch.linspace(0, 1, LEVELS).to(samples)
    for start in range(LEVELS - 1):
        for end in range(start + 1, LEVELS):
            yield between(levels[start] + (levels[end] - levels[start]) * share(2))
    yield between(share(RANDOM))
    yield between(share(RANDOM).round())
    yield public.samples[torch.randperm(len(public), generator=random)[:RANDOM].to(samples.device)]


def _children(
    parents: torch.Tensor, count: int, row: Dataset, public: Dataset, random: torch.Generator
) -> torch.Tensor:
    """(count, ...) rows of two parents each, with small and large changes."""
    low, high = _ends(row, public)
    one, two = (parents[torch.randint(len(parents), (count,), generator=random).to(parents.device)] for _ in range(2))

    def share(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=random).to(parents)

    ones = [1] * (parents.ndim - 1)
    mixed = torch.where(share(*one.shape) < 0.5 * (share(count, *ones) < 0.5), two, one)
    brighter = mixed + 0.04 * (share(count, *ones) - 0.5) * (high - low)
    ends = torch.where(share(*one.shape) < 0.5, low, high)
    changed = torch.where(share(*one.shape) < share(count, *ones) ** 4, ends, brighter)
    return torch.minimum(torch.maximum(changed, low), high)


def _ends(row: Dataset, public: Dataset) -> tuple[torch.Tensor, torch.Tensor]:
    """Least and greatest value of every number; of images 0 and 1."""
    if row.samples.ndim == 4:
        return torch.zeros_like(row.samples), torch.ones_like(row.samples)
    return public.samples.amin(dim=0, keepdim=True), public.samples.amax(dim=0, keepdim=True)


def _thinned(rows: torch.Tensor, most: int) -> torch.Tensor:
    """Up to `most` rows, evenly over all kinds."""
    if len(rows) <= most:
        return rows
    return rows[torch.linspace(0, len(rows) - 1, most).round().long().to(rows.device)]
