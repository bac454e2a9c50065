"""What chance gives: the distribution of pair metrics when scores are distinct and carry no information.

Ties make a figure vary less about the same mean (they average over orders), so that these nulls are wide enough then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from bench.evidence import PairEvidence
from bench.seeds import generator
from bench.statistics.bootstrap import LEVELS

DRAWS = 1000
MEANS = 9999
MOST_TRIES = 1024
TOGETHER = 10
"""Data samples whose 2^10 subsets are told apart at once."""

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Chance:
    """What random scores give for a mean over keys.

    Args:
        mean: The expected figure.
        low, high: 95 % of the figures.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Which links stand where: all that a null of independent scores depends on.

    Args:
        shape: (n, m) of the whole grid.
        links: (p, 2) int64, distinct: raw row, released row.
        rows: (s, n) bool, raw rows of each data sample.
        cols: (s, m) bool, its released rows.
    """

    shape: tuple[int, int]
    links: Integers
    rows: Bools
    cols: Bools

    @classmethod
    def of(cls, evidence: PairEvidence, links: torch.Tensor) -> Layout:
        """The layout of one notion of a correct pair; released rows belong to samples by the links between images."""
        images = evidence.images.links.numpy()
        rows = np.zeros((len(evidence.samples), evidence.shape[0]), dtype=np.bool_)
        cols = np.zeros((len(evidence.samples), evidence.shape[1]), dtype=np.bool_)
        for number, sample in enumerate(evidence.samples):
            rows[number, sample.numpy()] = True
            cols[number, images[rows[number, images[:, 0]], 1]] = True
        return cls(evidence.shape, torch.unique(links, dim=0).numpy(), rows, cols)

    @property
    def whole(self) -> Layout:
        """The same links with the whole grid as the only data sample."""
        rows, cols = (np.ones((1, length), dtype=np.bool_) for length in self.shape)
        return Layout(self.shape, self.links, rows, cols)

    @cached_property
    def inside(self) -> Bools:
        """(s, p) bool: whether a sample's grid holds a link."""
        held: Bools = self.rows[:, self.links[:, 0]] & self.cols[:, self.links[:, 1]]
        return held

    @cached_property
    def pairs(self) -> Integers:
        """(s,) int64: pairs in each sample's grid."""
        many: Integers = self.rows.sum(axis=1) * self.cols.sum(axis=1)
        return many


def tries_until_held(members: Bools) -> int:
    """How many random columns of (s, c) bool to go through until each of the s data samples surely holds one of them.

    A sample misses them all once in 2^20 times at most. Half of the people may have a small share of all rows or links:
    where that is below one in a hundred, `MOST_TRIES` have to do.
    """
    least = float(members.mean(axis=1).min())
    return min(math.ceil(-20 / math.log2(1 - least)), MOST_TRIES) if 0 < least < 1 else 1


def first_hit_within(guesses: int, pairs: int, links: int) -> float:
    """Probability that the first of `links` correct pairs is among the first `guesses` of `pairs` in random order.

    Negative hypergeometric: 1 - C(pairs - guesses, links) / C(pairs, links); the mean is (pairs + 1) / (links + 1).

    >>> round(first_hit_within(1, 100, 10), 12)
    0.1
    """
    if guesses > pairs - links:
        return 1.0
    lost = sum(map(math.lgamma, (pairs - guesses + 1, pairs - links + 1)))
    lost -= sum(map(math.lgamma, (pairs - guesses - links + 1, pairs + 1)))
    return -math.expm1(lost)


def simulate_guesswork(layout: Layout, *, seed: int, draws: int) -> torch.Tensor:
    """Draws of mean guesswork over the data samples for one key under random distinct scores, by exact sampling.

    Only what matters is drawn: the links' scores, how many unlinked pairs stand above the lowest first hit of any
    sample (binomial), between which first hits, and which of the samples hold them (an unlinked pair may be drawn
    twice, which is as rare as 1 in n m). The work does not depend on the size of the grid but for the links.

    Args:
        layout: Links and data samples. Of more than `TOGETHER` samples, those in different batches share links and
            their scores, but draw their unlinked pairs apart.
        seed: The same seed gives the same draws.
        draws: How many.

    Returns:
        (draws,) float64.
    """
    random = np.random.default_rng(seed)
    samples = len(layout.rows)
    unlinked = layout.shape[0] * layout.shape[1] - len(layout.links)
    if unlinked == 0:
        return torch.ones(draws, dtype=torch.float64)
    batches = [slice(start, min(start + TOGETHER, samples)) for start in range(0, samples, TOGETHER)]
    tables = [_unlinked_by_samples(layout, batch) for batch in batches]
    found = np.empty(draws)
    for draw in range(draws):
        first = np.where(layout.inside, random.random(len(layout.links)), -1.0).max(axis=1)
        edges, place = np.unique(-first, return_inverse=True)
        above = random.binomial(unlinked, 1 + edges[-1])
        between = random.multinomial(above, np.diff(edges, prepend=-1.0) / (1 + edges[-1]))
        total = samples
        for batch, (shares, members) in zip(batches, tables, strict=True):
            held = (random.multinomial(between, shares) @ members).cumsum(axis=0)
            total += int(np.take_along_axis(held, place[None, batch], axis=0).sum())
        found[draw] = total / samples
    return torch.from_numpy(found)


def _unlinked_by_samples(layout: Layout, batch: slice) -> tuple[Floats, Integers]:
    """For every set of the batch's samples: the share of unlinked pairs that exactly they hold; its members, 0 or 1."""
    members = _bits(layout.rows[batch]), _bits(layout.cols[batch])
    many = batch.stop - batch.start
    rows, cols = (_supersets(np.bincount(bits, minlength=1 << many), many, 1) for bits in members)
    links = _bits(layout.inside[batch])
    exactly = _supersets(rows * cols, many, -1) - np.bincount(links, minlength=1 << many)
    sets = np.arange(1 << many)[:, None] >> np.arange(many) & 1
    return exactly / exactly.sum(), sets


def _supersets(counts: Integers, many: int, sign: int) -> Integers:
    """Sums over all sets that hold a set of `many` samples (sign 1), or back (sign -1)."""
    table = counts.reshape([2] * many).copy()
    for axis in range(many):
        halves = np.moveaxis(table, axis, 0)
        halves[0] += sign * halves[1]
    return table.reshape(-1)


def _bits(members: Bools) -> Integers:
    """One integer a column of (s, c) bool, whose bit i says whether sample i holds it."""
    bits: Integers = (members.astype(np.int64) << np.arange(len(members))[:, None]).sum(axis=0)
    return bits


def chance_of_mean(draws: torch.Tensor, *, keys: int, mean: float, seed: int) -> Chance:
    """What chance gives for a mean over `keys` independent keys, from draws (r,) of one key's figure."""
    if keys == 1:
        means = draws
    else:
        chosen = torch.randint(len(draws), (MEANS, keys), generator=generator(seed))
        means = draws[chosen].mean(dim=1)
    low, high = torch.quantile(means, LEVELS).tolist()
    return Chance(mean, low, high)


def two_sided(draws: torch.Tensor, value: float) -> float:
    """Twice the share of draws (with the value as one of them) that are no nearer than `value` on its side, at most 1.

    >>> two_sided(torch.arange(99.0), -5.0)
    0.02
    """
    slack = 1e-9 * abs(value)
    fewer = min(int((draws <= value + slack).sum()), int((draws >= value - slack).sum()))
    return min(1.0, 2 * (1 + fewer) / (1 + len(draws)))


def permutation_p(own: Sequence[float], permuted: Sequence[Sequence[float]], *, seed: int) -> float:
    """Two-sided p of a mean over keys among the means that take, for each key, its own figure or one of its permuted.

    Under chance a key's own figure and its permuted figures are alike, so that each of these choices is as likely to be
    the observed choice: the test is exact for any scores. `MEANS` random choices stand for all of them, and the
    observed mean counts as one more, so that p errs upwards. Where none of them comes near it, p is a bound in closed
    form, if that is lower: with the few tries that a verdict allows for (findings, attacks), 2 / (1 + `MEANS`) may be
    too coarse.

    Args:
        own: One figure a key.
        permuted: For each key, its figures under exchanged links, as many for every key.
        seed: For the choices.
    """
    table = torch.tensor([[first, *others] for first, others in zip(own, permuted, strict=True)], dtype=torch.float64)
    chosen = torch.randint(table.shape[1], (len(own), MEANS), generator=generator(seed))
    p = two_sided(table.gather(1, chosen).mean(dim=0), float(table[:, 0].mean()))
    return min(p, 2 * min(_least_bound(table), _least_bound(-table))) if p <= 2 / (1 + MEANS) else p


def _least_bound(table: torch.Tensor) -> float:
    """A bound on the chance that one figure of each row, drawn at random, sum to at most what the first figures do.

    Chernoff's: for any t >= 0, the product over the rows of the mean of exp(-t (figure - first)). The least of some t.
    """
    over = table - table[:, :1]
    scale = float(over.abs().amax())
    if scale == 0:
        return 1.0
    tilts = torch.logspace(-2, 4, 61, dtype=torch.float64) / scale
    logs = torch.logsumexp(-tilts[:, None, None] * over, dim=2) - math.log(table.shape[1])
    return min(1.0, math.exp(float(logs.sum(dim=1).amin())))
