"""Ranks: top-1, top-5 and median rank of the right raw row."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np
import torch

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import derive
from bench.statistics.confidence_intervals import at_least_binomial
from bench.statistics.order_statistics import median_over_keys
from bench.statistics.pair_statistics import (
    DRAWS,
    Bools,
    Integers,
    Layout,
    chance_of_mean,
    chance_of_median,
    from_people,
    pair_score,
    tries_until_held,
    weighted_mean,
    weighted_median,
    with_primary,
)
from bench.types import Column, Metric, NotApplicable, Score

FIVE = 5
CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

MEDIAN_DRAWS = 500


def top_1(counts: PairCounts) -> float:
    """Share of linked released rows whose best raw row is linked."""
    return float(counts.top_1.mean())


def chance_top_1(counts: PairCounts) -> float:
    """Expected share of random scores: a released row's mean links / n."""
    return int(counts.linked.sum()) / (len(counts.top_1) * counts.shape[0])


@dataclass(frozen=True)
class Top1(Metric[PairEvidence]):
    """Share of released rows linked to their best-scored raw row."""

    name: ClassVar[str] = "top-1"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "rank-1 identification rate, as in the FERET evaluation (Phillips et al. 2000)"
    column: ClassVar[Column] = Column(
        title="Top-1",
        meaning="The share of images for which Eve's best-scored partner is the right one.",
        group="Privacy by image: weakest figure over the attacks that count",
        digits=3,
        chance="1/n for n candidates",
        order=15,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys of the share on the whole release.

        The interval is over people and keys. It is no narrower than that of as many independent answers as there are
        rows and keys: no hit is no proof. Chance: a released row's links over n, and draws of random scores
        (`simulate_top_1`). p: people exchanged.
        """
        return with_primary(evidence, partial(_top_1_score, evidence))


def _top_1_score(evidence: PairEvidence, level: PairLevel) -> Score:
    seed = derive(evidence.seed, "null", "top-1")
    chance = chance_of_mean(
        simulate_top_1(Layout.of(evidence, level.links).whole, seed=seed, draws=DRAWS), keys=len(level.full),
        mean=fmean(map(chance_top_1, level.full)), seed=seed,
    )  # fmt: skip
    replicates = from_people(evidence, level, lambda counts: counts.top_1, weighted_mean, "share")
    score = pair_score(evidence, level, top_1, replicates, chance, better="lower", seed=seed)
    people = int(evidence.persons.max()) + 1
    return at_least_binomial(score, sum(len(counts.top_1) for counts in level.full), people=people)


def simulate_top_1(layout: Layout, *, seed: int, draws: int) -> torch.Tensor:
    """One key's draws of mean top-1 under random scores, sampled exactly.

    The scores are distinct; the mean is over the data samples. In each released row's column, raw rows come in random
    order; a data sample's answer is the first row that it holds. Drawing rows with replacement changes nothing: a row
    that came before answers no further sample. Columns without a linked row among the first ones (`tries_until_held`)
    cannot be hit: only the others are drawn, given the place of their first.

    Args:
        layout: Links and data samples.
        seed: The same seed gives the same draws.
        draws: How many.

    Returns:
        (draws,) float64.
    """
    random = np.random.default_rng(seed)
    n, m = layout.shape
    depth = tries_until_held(layout.rows)
    codes = np.sort(layout.links[:, 1] * n + layout.links[:, 0])
    linked = np.bincount(layout.links[:, 1], minlength=m)
    start = linked.cumsum() - linked
    with np.errstate(divide="ignore"):
        miss = np.log1p(-linked / n)
    reach = -np.expm1(depth * miss)
    asked = np.array([len(np.unique(layout.links[held, 1])) for held in layout.inside])
    means = np.empty(draws)
    for draw in range(draws):
        cols = np.flatnonzero(random.random(m) < reach)
        first = np.log1p(-random.random(len(cols)) * reach[cols]) / miss[cols]
        first = np.minimum(first.astype(np.int64), depth - 1)
        rows = random.integers(n, size=(len(cols), depth))
        while (early := _linked(codes, rows, cols, n) & (np.arange(depth) < first[:, None])).any():
            rows[early] = random.integers(n, size=int(early.sum()))
        rows[np.arange(len(cols)), first] = codes[start[cols] + random.integers(linked[cols])] % n
        held = layout.rows[:, rows]
        answer = held.argmax(axis=2)[:, :, None]
        hits = np.take_along_axis(held & _linked(codes, rows, cols, n), answer, axis=2)
        means[draw] = (hits.sum(axis=(1, 2)) / asked).mean()
    return torch.from_numpy(means)


def _linked(codes: Integers, rows: Integers, cols: Integers, n: int) -> Bools:
    """True (of `rows`' shape) if (rows[i, j], cols[i]) is a link."""
    wanted = cols[:, None] * n + rows
    there: Bools = codes[np.searchsorted(codes, wanted).clip(max=len(codes) - 1)] == wanted
    return there


def found_within(counts: PairCounts, guesses: int) -> float:
    """Share of linked released rows with the first correct rank within `guesses`.

    Of one guess it is top-1: ties are drawn. Of more, a row counts if its expected rank is within them.
    """
    if guesses == 1:
        return top_1(counts)
    return float((counts.ranks <= guesses).double().mean())


def hits(counts: PairCounts) -> torch.Tensor:
    """(c,) float64: 1 if the first correct row ranks 5 or better.

    One number for each released row with a link; ranks of ties are expected ranks. Ties are averaged, as in
    `PairCounts.ranks`: a row that ties with all others is no hit.
    """
    return (counts.ranks <= FIVE).double()


def top_5(counts: PairCounts) -> float:
    """Share of released rows with a link that are hits."""
    return found_within(counts, FIVE)


def chance_of_five(layout: Layout) -> np.ndarray:
    """(c,) float64: chances of a hit under random distinct scores.

    One number for each released row with a link. With l of n raw rows linked, 1 - C(n - l, 5) / C(n, 5).
    """
    n = layout.shape[0]
    linked = np.unique(layout.links[:, 1], return_counts=True)[1]
    missed = np.ones(len(linked))
    for guess in range(FIVE):
        missed *= np.clip(n - linked - guess, 0, None) / (n - guess)
    chances: np.ndarray = 1 - missed
    return chances


@dataclass(frozen=True)
class Top5(Metric[PairEvidence]):
    """Share of released rows linked to one of their best five."""

    name: ClassVar[str] = "top-5"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "rank-5 identification rate, as in the FERET evaluation (Phillips et al. 2000)"
    column: ClassVar[Column] = Column(
        title="Top-5",
        meaning="The share of images for which the right partner is among the five that Eve scores highest; the same "
        "for other numbers of guesses stands beside it.",
        group="Other attack figures: weakest",
        digits=3,
        chance="5/n for n candidates",
        order=5,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys of the share; interval and p as in `top-1`.

        Parts "within g" are points of the curve over numbers of guesses, without intervals.

        Raises:
            NotApplicable: There are five raw rows or fewer.
        """
        if evidence.shape[0] <= FIVE:
            raise NotApplicable(f"top-5 needs more than five raw rows, got {evidence.shape[0]}")
        return with_primary(evidence, partial(_top_5_score, evidence))


def _top_5_score(evidence: PairEvidence, level: PairLevel) -> Score:
    seed = derive(evidence.seed, "null", "top-5")
    chances = chance_of_five(Layout.of(evidence, level.links))
    # Columns of random distinct scores are independent of each other.
    drawn = np.random.default_rng(seed).random((DRAWS, len(chances))) < chances
    chance = chance_of_mean(
        torch.from_numpy(drawn.mean(axis=1)), keys=len(level.full), mean=float(chances.mean()), seed=seed
    )
    replicates = from_people(evidence, level, hits, weighted_mean, "share")
    score = pair_score(evidence, level, top_5, replicates, chance, better="lower", seed=seed)
    parts = {
        f"within {guesses}": Score(fmean(found_within(counts, guesses) for counts in level.full), None, None, score.n)
        for guesses in CURVE
        if guesses <= evidence.shape[0]
    }
    people = int(evidence.persons.max()) + 1
    return replace(
        at_least_binomial(score, sum(len(counts.ranks) for counts in level.full), people=people), parts=parts
    )


def median_rank(counts: PairCounts) -> float:
    """Median rank of the first correct raw row, ties averaged.

    It is over the released rows with a link; ranks begin at 1. With an even number of them, the mean of the middle two.
    """
    if len(counts.ranks) == 0:
        raise ValueError("median rank needs the ranks of linked columns, got counts without any")
    return float(np.median(counts.ranks.numpy()))


@dataclass(frozen=True)
class MedianRank(Metric[PairEvidence]):
    """Rank of the first correct raw row, median over released rows.

    Matching one kind of rows with another is scored in the field by top-1 beside the median rank (Karpathy and Fei-Fei
    2015, "Deep visual-semantic alignments", section 4.2; Salvador et al. 2017, "Learning cross-modal embeddings",
    section 5). The mean reciprocal rank, which is the mAP of person re-identification with one right row, weighs the
    top so much that it repeats top-1, and with ties it is not a function of expected ranks; the median sees what an
    attack learns about most people without finding any of them.
    """

    name: ClassVar[str] = "median-rank"
    unit: ClassVar[str] = "rank"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Karpathy and Fei-Fei 2015, section 4.2"
    column: ClassVar[Column] = Column(
        title="Median rank",
        meaning="How far down Eve's list of raw images the right one stands, counted from 1, for the released "
        "image in the middle of all of them: what she learns about most people, even if she finds "
        "no one for certain.",
        group="Other attack figures: weakest",
        chance="about n/2 for n candidates",
        order=10,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Median over keys of the median rank on the whole release.

        Ranks are skewed over keys, so that a few keys bound no mean of them. The interval is that of order statistics
        (`bench.statistics.order_statistics`), of these people; five keys or fewer have none. Chance: draws of random
        scores (`simulate_median_rank`). p: people exchanged, of the mean over keys.
        """
        return with_primary(evidence, partial(_median_rank_score, evidence))


def _median_rank_score(evidence: PairEvidence, level: PairLevel) -> Score:
    seed = derive(evidence.seed, "null", "median-rank")
    draws = simulate_median_rank(Layout.of(evidence, level.links).whole, seed=seed, draws=MEDIAN_DRAWS)
    chance = chance_of_median(draws, keys=len(level.full), seed=seed)
    replicates = from_people(evidence, level, lambda counts: counts.ranks, weighted_median, "log")
    score = pair_score(evidence, level, median_rank, replicates, chance, better="higher", seed=seed)
    return median_over_keys(score, [median_rank(counts) for counts in level.full])


def simulate_median_rank(layout: Layout, *, seed: int, draws: int) -> torch.Tensor:
    """One key's draws of the mean median rank under random scores.

    The scores are distinct; the mean is over the data samples. A link's score is uniform and the same in every sample;
    a sample's unlinked rows above it are binomial, taken as rounded normals. Two samples hold some of the same rows:
    their normals are correlated by the share that they have in common, on average.

    Args:
        layout: Links and data samples.
        seed: The same seed gives the same draws.
        draws: How many.

    Returns:
        (draws,) float64.
    """
    random = np.random.default_rng(seed)
    order = np.argsort(layout.links[:, 1], kind="stable")
    cols = layout.links[order, 1]
    parts = []
    for held, rows in zip(layout.inside[:, order], layout.rows.sum(axis=1), strict=True):
        starts = np.flatnonzero(np.diff(cols[held], prepend=-1))
        parts.append((np.flatnonzero(held), starts, rows - np.diff(starts, append=int(held.sum()))))
    held = layout.rows.astype(np.float64)
    common = held @ held.T
    size = np.sqrt(np.diag(common))
    pairs = max(1, len(held) * (len(held) - 1))
    alike = max(0.0, float((common / np.outer(size, size)).sum() - len(held)) / pairs)
    means = np.empty(draws)
    for draw in range(draws):
        score = random.random(len(cols))
        shared = math.sqrt(alike) * random.standard_normal(layout.shape[1])
        medians = []
        for links, starts, unlinked in parts:
            best = np.maximum.reduceat(score[links], starts)
            above = unlinked * (1 - best)
            noise = math.sqrt(1 - alike) * random.standard_normal(len(best)) + shared[cols[links[starts]]]
            noise *= np.sqrt(above * best)
            medians.append(np.median(np.rint(above + noise).clip(0, unlinked)))
        means[draw] = 1 + np.mean(medians)
    return torch.from_numpy(means)
