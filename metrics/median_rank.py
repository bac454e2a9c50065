"""Median rank: the right raw row's place in an attack's list.

It is the median over the released rows. Matching one kind of rows with another is scored in the field by top-1 beside
the median rank (Karpathy and Fei-Fei 2015, "Deep visual-semantic alignments", section 4.2; Salvador et al. 2017,
"Learning cross-modal embeddings", section 5). The mean reciprocal rank, which is the mAP of person re-identification
where one row is right, weighs the top so much that it repeats top-1, and with ties it is not a function of expected
ranks; the median sees what an attack learns about most people without finding any of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import torch

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import derive
from bench.statistics.pair_statistics import (
    Layout,
    chance_of_mean,
    from_people,
    pair_score,
    weighted_median,
    with_primary,
)
from bench.types import Column, Metric, Score

DRAWS = 500


def median_rank(counts: PairCounts) -> float:
    """Median rank of the first correct raw row, ties averaged.

    It is over the released rows with a link; ranks begin at 1. With an even number of them, the mean of the middle two.
    """
    if len(counts.ranks) == 0:
        raise ValueError("median rank needs the ranks of linked columns, got counts without any")
    return float(np.median(counts.ranks.numpy()))


@dataclass(frozen=True)
class MedianRank(Metric[PairEvidence]):
    """Rank of the first correct raw row, median over released rows."""

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
        """Mean over keys of the median rank on the whole release.

        The interval is over people and keys. If the median of most keys is 1, a whole number that hardly moves, it
        covers less than it says. Chance: draws of random scores (`simulate_median_rank`). p: people exchanged.
        """
        return with_primary(evidence, partial(_score, evidence))


def _score(evidence: PairEvidence, level: PairLevel) -> Score:
    seed = derive(evidence.seed, "null", "median-rank")
    draws = simulate_median_rank(Layout.of(evidence, level.links).whole, seed=seed, draws=DRAWS)
    chance = chance_of_mean(draws, keys=len(level.full), mean=float(draws.mean()), seed=seed)
    found = from_people(evidence, level, lambda counts: counts.ranks, weighted_median, "log")
    score = pair_score(evidence, level, median_rank, found, chance, seed=seed)
    return replace(score, low=max(1.0, score.low or 1.0))


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
    found = np.empty(draws)
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
        found[draw] = 1 + np.mean(medians)
    return torch.from_numpy(found)
