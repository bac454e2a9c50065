"""Top-1: the share of released rows whose best raw row is right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np
import torch

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import derive
from bench.statistics.confidence_intervals import at_least_binomial
from bench.statistics.pair_statistics import (
    DRAWS,
    Bools,
    Integers,
    Layout,
    chance_of_mean,
    from_people,
    pair_score,
    tries_until_held,
    weighted_mean,
    with_primary,
)
from bench.types import Column, Metric, Score


def top_1(counts: PairCounts) -> float:
    """Share of released rows with a linked best-scored raw row.

    Rows without a link are left out; ties are broken at random.
    """
    return float(counts.top_1.mean())


def chance_top_1(counts: PairCounts) -> float:
    """Expected share of random scores: a released row's mean links / n.

    Ties do not change it.
    """
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
        return with_primary(evidence, partial(_score, evidence))


def _score(evidence: PairEvidence, level: PairLevel) -> Score:
    seed = derive(evidence.seed, "null", "top-1")
    chance = chance_of_mean(
        simulate_top_1(Layout.of(evidence, level.links).whole, seed=seed, draws=DRAWS), keys=len(level.full),
        mean=fmean(map(chance_top_1, level.full)), seed=seed,
    )  # fmt: skip
    found = from_people(evidence, level, lambda counts: counts.top_1, weighted_mean, "share")
    score = pair_score(evidence, level, top_1, found, chance, seed=seed)
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
    found = np.empty(draws)
    for draw in range(draws):
        cols = np.flatnonzero(random.random(m) < reach)
        first = np.log1p(-random.random(len(cols)) * reach[cols]) / miss[cols]
        first = np.minimum(first.astype(np.int64), depth - 1)
        rows = random.integers(n, size=(len(cols), depth))
        while (early := _among(codes, rows, cols, n) & (np.arange(depth) < first[:, None])).any():
            rows[early] = random.integers(n, size=int(early.sum()))
        rows[np.arange(len(cols)), first] = codes[start[cols] + random.integers(linked[cols])] % n
        held = layout.rows[:, rows]
        answer = held.argmax(axis=2)[:, :, None]
        hits = np.take_along_axis(held & _among(codes, rows, cols, n), answer, axis=2)
        found[draw] = (hits.sum(axis=(1, 2)) / asked).mean()
    return torch.from_numpy(found)


def _among(codes: Integers, rows: Integers, cols: Integers, n: int) -> Bools:
    """Bool of `rows`' shape: true if (rows[i, j], cols[i]) is a link.

    The links are the sorted codes col * n + row.
    """
    wanted = cols[:, None] * n + rows
    there: Bools = codes[np.searchsorted(codes, wanted).clip(max=len(codes) - 1)] == wanted
    return there
