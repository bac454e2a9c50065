"""Top-5: share of released rows with the right row among five."""

from __future__ import annotations

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
from bench.statistics.pair_statistics import (
    DRAWS,
    Layout,
    chance_of_mean,
    from_people,
    pair_score,
    weighted_mean,
    with_primary,
)
from bench.types import Column, Metric, NotApplicable, Score

FIVE = 5
CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def found_within(counts: PairCounts, guesses: int) -> float:
    """Share of released rows whose first correct raw row ranks within `guesses`.

    Rows without a link are left out; ties are averaged.
    """
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
    found: np.ndarray = 1 - missed
    return found


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
        return with_primary(evidence, partial(_score, evidence))


def _score(evidence: PairEvidence, level: PairLevel) -> Score:
    seed = derive(evidence.seed, "null", "top-5")
    chances = chance_of_five(Layout.of(evidence, level.links))
    # Columns of random distinct scores are independent of each other.
    drawn = np.random.default_rng(seed).random((DRAWS, len(chances))) < chances
    chance = chance_of_mean(
        torch.from_numpy(drawn.mean(axis=1)), keys=len(level.full), mean=float(chances.mean()), seed=seed
    )
    found = from_people(evidence, level, hits, weighted_mean, "share")
    score = pair_score(evidence, level, top_5, found, chance, seed=seed)
    parts = {
        f"within {guesses}": Score(fmean(found_within(counts, guesses) for counts in level.full), None, None, score.n)
        for guesses in CURVE
        if guesses <= evidence.shape[0]
    }
    people = int(evidence.persons.max()) + 1
    return replace(
        at_least_binomial(score, sum(len(counts.ranks) for counts in level.full), people=people), parts=parts
    )
