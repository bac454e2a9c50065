"""TPR at low FPR: true pairs an attack is sure of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np
import scipy
import torch

from bench.evidence import PairEvidence, PairLevel
from bench.seeds import derive
from bench.statistics.confidence_intervals import at_least_binomial
from bench.statistics.pair_statistics import (
    DRAWS,
    Layout,
    chance_of_mean,
    from_halves,
    pair_score,
    tpr_at,
    with_primary,
)
from bench.types import Column, Metric, NotApplicable, Score

RATE = 1000
LOWER = 10_000


def chance_tpr(unlinked: int, one_in: int) -> float:
    """Expected TPR of random distinct scores.

    It is (x + 1) / (q + 1), with x = floor(q / one_in) of the q unlinked pairs allowed. That is the chance of a linked
    pair to stand before the first unlinked one that is not allowed any more.
    """
    return (unlinked // one_in + 1) / (unlinked + 1)


@dataclass(frozen=True)
class TPRAtLowFPR(Metric[PairEvidence]):
    """Share of true pairs found at a false-positive rate of 0.1 %.

    The share at one wrong pair in 10,000 is a part.
    """

    name: ClassVar[str] = "tpr-at-low-fpr"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Carlini et al. 2022, Membership inference attacks from first principles, section IV"
    column: ClassVar[Column] = Column(
        title="TPR at 0.1 % FPR",
        meaning="The share of the true pairs of a raw and a released image that Eve names where she is wrong "
        "about one in a thousand of the false pairs; where there are enough pairs, the figure at one in "
        "ten thousand stands beside it.",
        group="Other attack figures: weakest",
        digits=4,
        chance="about 0.001",
        order=15,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys of the share on the whole release.

        The interval is over people and keys. It is no narrower than that of as many independent pairs as there are
        links and keys: no hit is no proof. Chance: (x + 1) / (q + 1) with x of q wrong pairs allowed, and draws of
        random scores (`simulate_tpr`). p: people exchanged.

        Raises:
            NotApplicable: The release has fewer than 1,000 wrong pairs.
        """
        return with_primary(evidence, partial(_score, evidence))


def _score(evidence: PairEvidence, level: PairLevel) -> Score:
    fewest = min(int(counts.others.sum()) for counts in level.full)
    if fewest < RATE:
        raise NotApplicable(f"a rate of one in {RATE} needs as many wrong pairs, got {fewest}")
    score = _at(evidence, level, RATE)
    if fewest < LOWER:
        return score
    return replace(score, parts={f"one in {LOWER}": _at(evidence, level, LOWER)})


def _at(evidence: PairEvidence, level: PairLevel, one_in: int) -> Score:
    seed = derive(evidence.seed, "null", "tpr", one_in)
    draws = simulate_tpr(Layout.of(evidence, level.links).whole, one_in=one_in, seed=seed, draws=DRAWS)
    expected = fmean(chance_tpr(int(counts.others.sum()), one_in) for counts in level.full)
    chance = chance_of_mean(draws, keys=len(level.full), mean=expected, seed=seed)
    figure = partial(tpr_at, one_in=one_in)
    score = pair_score(evidence, level, figure, from_halves(evidence, level, figure, "share"), chance, seed=seed)
    people = int(evidence.persons.max()) + 1
    return at_least_binomial(score, sum(int(counts.linked.sum()) for counts in level.full), people=people)


def simulate_tpr(layout: Layout, one_in: int, *, seed: int, draws: int) -> torch.Tensor:
    """One key's draws of mean TPR under random distinct scores.

    The mean is over the data samples. A link's score is uniform and the same in every sample. The first unlinked score
    that is not allowed any more is a beta order statistic; samples take it at one common quantile, so that the mean
    varies a little too much, never too little (by a share of the order of 1 / n: links are that much rarer than the
    unlinked pairs that set the bar).

    Args:
        layout: Links and data samples.
        one_in: The inverse of the false-positive rate.
        seed: The same seed gives the same draws.
        draws: How many.

    Returns:
        (draws,) float64.
    """
    random = np.random.default_rng(seed)
    linked = layout.inside.sum(axis=1)
    unlinked = layout.pairs - linked
    allowed = unlinked // one_in
    bars = scipy.stats.beta.ppf(random.random(draws)[:, None], allowed + 1, unlinked - allowed)
    found = np.empty(draws)
    for draw, bar in enumerate(bars):
        place = random.random(len(layout.links))
        near = np.flatnonzero(place < bar.max())
        found[draw] = ((layout.inside[:, near] & (place[near] < bar[:, None])).sum(axis=1) / linked).mean()
    return torch.from_numpy(found)
