"""Scores of pair metrics: value, interval over people and keys, chance.

The null distribution is that of distinct scores without information. Ties reduce a figure's variance at the same mean
(they average over orders), so the nulls stay conservative.

A figure that depends on the number of rows by a factor at most (an area, a rate, guesses) is resampled by halves of the
people without replacement: it varies about the whole as the whole does about other people (`from_halves`). A figure
over released rows, each ranked among all raw rows (top-1, ranks), is resampled by people with replacement, each with
the results of their released rows (`from_people`): fewer candidates would make an easier game.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import torch

from bench.contract.replicates import Scale
from bench.evidence import ExchangedAreas, PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import generator
from bench.statistics.bootstrap import ONE_EACH, central, draw_weights
from bench.statistics.confidence_intervals import with_interval
from bench.types import Exchanges, Replicates, Score

if TYPE_CHECKING:
    import numpy.typing as npt

DRAWS = 1000
MEANS = 9999
MOST_TRIES = 1024
EQUAL = 1e-12
"""Areas that differ by less are equal but for rounding."""
TOGETHER = 10
"""Data samples whose 2^10 subsets are enumerated at once."""

Better: TypeAlias = Literal["higher", "lower"]
"""Direction that is better for the data owner."""
Bools: TypeAlias = "npt.NDArray[np.bool_]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Integers: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True)
class Chance:
    """Null distribution of a mean over keys.

    Args:
        mean: The expected figure.
        low, high: Central 95 % of the figures.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of links: all that a null of independent scores depends on.

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
        """The layout of a notion; released rows join samples by image links."""
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
        """(s, p) bool: link in the sample's grid."""
        inside: Bools = self.rows[:, self.links[:, 0]] & self.cols[:, self.links[:, 1]]
        return inside

    @cached_property
    def pairs(self) -> Integers:
        """(s,) int64: pairs in each sample's grid."""
        pairs: Integers = self.rows.sum(axis=1) * self.cols.sum(axis=1)
        return pairs


def tries_until_held(members: Bools) -> int:
    """Columns that hit every sample but for 2^-20, `MOST_TRIES` at most."""
    least = float(members.mean(axis=1).min())
    return min(math.ceil(-20 / math.log2(1 - least)), MOST_TRIES) if 0 < least < 1 else 1


def first_hit_within(guesses: int, pairs: int, links: int) -> float:
    """P(first of `links` correct pairs is within `guesses` of `pairs`).

    In random order: negative hypergeometric, 1 - C(pairs - guesses, links) / C(pairs, links), of mean
    (pairs + 1) / (links + 1).

    >>> round(first_hit_within(1, 100, 10), 12)
    0.1
    """
    if guesses > pairs - links:
        return 1.0
    lost = sum(map(math.lgamma, (pairs - guesses + 1, pairs - links + 1)))
    lost -= sum(map(math.lgamma, (pairs - guesses - links + 1, pairs + 1)))
    return -math.expm1(lost)


def simulate_guesswork(layout: Layout, *, seed: int, draws: int) -> torch.Tensor:
    """Exact draws of mean guesswork of one key under random, distinct scores.

    Drawn are the links' scores, the number of unlinked pairs above the lowest first hit of any sample (binomial),
    their places between first hits, and the samples that hold them (an unlinked pair is drawn twice with
    probability 1 / (n m)). The work depends on the number of links, not on n m. Batches of `TOGETHER` samples share
    links and their scores.
    """
    random = np.random.default_rng(seed)
    samples = len(layout.rows)
    unlinked = layout.shape[0] * layout.shape[1] - len(layout.links)
    if unlinked == 0:
        return torch.ones(draws, dtype=torch.float64)
    batches = [slice(start, min(start + TOGETHER, samples)) for start in range(0, samples, TOGETHER)]
    tables = [_unlinked_by_samples(layout, batch) for batch in batches]
    means = np.empty(draws)
    for draw in range(draws):
        first = np.where(layout.inside, random.random(len(layout.links)), -1.0).max(axis=1)
        edges, place = np.unique(-first, return_inverse=True)
        above = random.binomial(unlinked, 1 + edges[-1])
        between = random.multinomial(above, np.diff(edges, prepend=-1.0) / (1 + edges[-1]))
        total = samples
        for batch, (shares, members) in zip(batches, tables, strict=True):
            counts = (random.multinomial(between, shares) @ members).cumsum(axis=0)
            total += int(np.take_along_axis(counts, place[None, batch], axis=0).sum())
        means[draw] = total / samples
    return torch.from_numpy(means)


def _unlinked_by_samples(layout: Layout, batch: slice) -> tuple[Floats, Integers]:
    """Share of unlinked pairs in each set of samples; the sets."""
    members = _bits(layout.rows[batch]), _bits(layout.cols[batch])
    count = batch.stop - batch.start
    rows, cols = (_supersets(np.bincount(bits, minlength=1 << count), count, 1) for bits in members)
    links = _bits(layout.inside[batch])
    exactly = _supersets(rows * cols, count, -1) - np.bincount(links, minlength=1 << count)
    sets = np.arange(1 << count)[:, None] >> np.arange(count) & 1
    return exactly / exactly.sum(), sets


def _supersets(counts: Integers, count: int, sign: int) -> Integers:
    """Sums over the supersets of each set (1), or the inverse (-1)."""
    table = counts.reshape([2] * count).copy()
    for axis in range(count):
        halves = np.moveaxis(table, axis, 0)
        halves[0] += sign * halves[1]
    return table.reshape(-1)


def _bits(members: Bools) -> Integers:
    """An integer per column of (s, c) bool; bit i: sample i."""
    bits: Integers = (members.astype(np.int64) << np.arange(len(members))[:, None]).sum(axis=0)
    return bits


def chance_of_mean(draws: torch.Tensor, *, keys: int, mean: float, seed: int) -> Chance:
    """Null of a mean over `keys`, from draws (r,) of one."""
    return Chance(mean, *central(_by_keys(draws, keys, seed).mean(dim=1)))


def chance_of_median(draws: torch.Tensor, *, keys: int, seed: int) -> Chance:
    """Null of a median over `keys`, from draws (r,) of one."""
    medians = _by_keys(draws, keys, seed).quantile(0.5, dim=1)
    return Chance(float(medians.mean()), *central(medians))


def _by_keys(draws: torch.Tensor, keys: int, seed: int) -> torch.Tensor:
    """(r, keys) draws of several keys."""
    if keys == 1:
        return draws[:, None]
    return draws[torch.randint(len(draws), (MEANS, keys), generator=generator(seed))]


def one_sided(draws: torch.Tensor, value: float, *, better: Better) -> float:
    """P of figures at least as bad for the owner among draws.

    >>> one_sided(torch.arange(99.0), -5.0, better="higher"), one_sided(torch.arange(99.0), -5.0, better="lower")
    (0.01, 1.0)
    """
    slack = 1e-9 * abs(value)
    as_bad = draws <= value + slack if better == "higher" else draws >= value - slack
    return (1 + int(as_bad.sum())) / (1 + len(draws))


def permutation_p(own: Sequence[float], permuted: Sequence[Sequence[float]], *, better: Better, seed: int) -> float:
    """Permutation p that chance does as well for the attacker.

    Under chance a key's own figure and its permuted figures are exchangeable, so the test is exact for any scores.
    The null takes one of these figures for each key: `MEANS` random choices, with the observed mean as one more, so
    p errs upwards. If no choice is as extreme, p is a bound in closed form if that is lower: after correction for
    several tests, 1 / (1 + `MEANS`) may be too coarse.
    """
    table = torch.tensor([[first, *others] for first, others in zip(own, permuted, strict=True)], dtype=torch.float64)
    chosen = torch.randint(table.shape[1], (len(own), MEANS), generator=generator(seed))
    p = one_sided(table.gather(1, chosen).mean(dim=0), float(table[:, 0].mean()), better=better)
    return min(p, _least_bound(table if better == "higher" else -table)) if p <= 1 / (1 + MEANS) else p


def _least_bound(table: torch.Tensor) -> float:
    """Chernoff bound on the lower tail of a sum over rows.

    The smallest, over some t >= 0, product over rows of the mean of exp(-t (figure - first)).
    """
    over = table - table[:, :1]
    scale = float(over.abs().amax())
    if scale == 0:
        return 1.0
    tilts = torch.logspace(-2, 4, 61, dtype=torch.float64) / scale
    logs = torch.logsumexp(-tilts[:, None, None] * over, dim=2) - math.log(table.shape[1])
    return min(1.0, math.exp(float(logs.sum(dim=1).amin())))


RESAMPLES = 200
Figure: TypeAlias = "Callable[[PairCounts], float]"
OverRows: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]"
"""Released rows' results (c,) and times counted (draws, c) int64 -> the figure of each draw (draws,)."""


def from_halves(evidence: PairEvidence, level: PairLevel, figure: Figure, scale: Scale) -> Replicates:
    """Replicates by halves of the people."""
    resampled = [[figure(part) for part in key] for key in level.counts]
    own = [figure(counts) for counts in level.full]
    return Replicates(own, resampled, max(1, len(resampled[0]) - 1), evidence.resamples, scale, evidence.trainings)


def from_people(
    evidence: PairEvidence, level: PairLevel, rows: Callable[[PairCounts], torch.Tensor], over: OverRows, scale: Scale
) -> Replicates:
    """Replicates by people drawn with replacement.

    `rows` gives results (c,) of the released rows with a link, `over` the figure over them, not finite if none was
    drawn.
    """
    people = int(evidence.persons.max()) + 1
    weights = draw_weights(None, people, RESAMPLES, seed=evidence.draws)
    own, drawn = [], []
    for counts, owners in zip(level.full, level.owners, strict=True):
        results = rows(counts)
        own.append(float(over(results, torch.ones(1, len(results), dtype=torch.int64))))
        figures = over(results, weights[:, owners])
        drawn.append(torch.where(figures.isfinite(), figures, own[-1]).tolist())
    degrees = max(1, min(people, RESAMPLES) - 1)
    return Replicates(own, drawn, degrees, evidence.resamples, scale, evidence.trainings)


def pair_score(
    evidence: PairEvidence, level: PairLevel, figure: Figure, replicates: Replicates, chance: Chance, *,
    better: Better, seed: int,
) -> Score:  # fmt: skip
    """Mean over keys of a figure of the whole release, beside chance.

    p, that chance does as well for the attacker, is exact for any scores (`permutation_p`): the figure of the true
    links is ranked among those of links with people exchanged (rows, if the subjects are unknown).
    """
    p = None
    if level.permuted:
        own = [figure(counts) for counts in level.whole]
        p = permutation_p(own, [[figure(counts) for counts in key] for key in level.permuted], better=better, seed=seed)
    notes = ["chance: random scores"]
    notes.append("p: people exchanged" if p is not None else "no p: too few people with as many images to exchange")
    if not evidence.known:
        notes.append(ONE_EACH)
    score = Score(
        fmean(replicates.by_key), None, None, level.full[0].shape[0],
        null=chance.mean, null_low=chance.low, null_high=chance.high, p=p, sides=1, note="; ".join(notes),
    )  # fmt: skip
    return with_interval(score, replicates, over="people")


def among_exchanges(score: Score, exchanged: ExchangedAreas) -> Score:
    """An attack's ReID AUC with its ranks among exchanges of people.

    p is the share of exchanges that do as well, the true links among them. If none does, it is the tail of a normal
    distribution, if that is lower: a mean over many links is nearly normal (Hoeffding 1951, "A combinatorial central
    limit theorem").
    """
    areas = exchanged.areas.double()
    ordered = areas.sort().values
    tails = len(areas) - torch.searchsorted(ordered, areas - EQUAL)
    spread = float(areas[1:].std(correction=0))
    p = int(tails[0]) / len(areas)
    how = f"{len(areas) - 1} exchanges of people, the same under all keys and for all attacks"
    if tails[0] == 1 and spread > 0:
        normal = 0.5 * math.erfc(float(areas[0] - areas[1:].mean()) / spread / math.sqrt(2))
        if normal < p:
            p, how = normal, f"a normal tail, for none does as well of {how}"
    note = f"{score.note}; p: {how}"
    return replace(
        score, p=p, sides=1, note=note.replace("p: people exchanged; ", ""),
        exchanges=Exchanges(tails.tolist(), spread, exchanged.people),
    )  # fmt: skip


def weighted_mean(values: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
    """Mean over rows (c,), each counted (draws, c) times."""
    return times.double() @ values / times.sum(dim=1)


def weighted_median(values: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
    """Median over rows (c,), each counted (draws, c) times."""
    order = torch.argsort(values)
    up_to = times[:, order].cumsum(dim=1)
    total = up_to[:, -1:]
    middle = torch.cat(((total + 1) // 2, total // 2 + 1), dim=1)
    places = torch.searchsorted(up_to, middle).clamp(max=len(values) - 1)
    return torch.where(total[:, 0] > 0, values[order][places].mean(dim=1), torch.nan)


def tpr_at(counts: PairCounts, one_in: int) -> float:
    """True positive rate at a false positive rate of 1 / `one_in`.

    From integer counts; among pairs of one score it is interpolated linearly.
    """
    above = int(counts.others.sum()) - counts.others.cumsum(0)[1::2]
    tied, allowed = counts.others[1::2], int(counts.others.sum())
    # Everything times one_in, so the allowance is an integer.
    left = allowed - one_in * above
    whole = left >= one_in * tied
    hits = float(counts.linked[whole].sum())
    part = ~whole & (left > 0)
    hits += float(((counts.linked * left)[part].to(torch.float64) / (one_in * tied[part])).sum())
    return hits / int(counts.linked.sum())


PART = "primary constituent"


def with_primary(evidence: PairEvidence, score_at: Callable[[PairLevel], Score]) -> Score:
    """The image-level score; of mixed releases with primary constituents' as part."""
    score = score_at(evidence.images)
    if evidence.primary is None:
        return score
    return replace(score, parts={**score.parts, PART: score_at(evidence.primary)})
