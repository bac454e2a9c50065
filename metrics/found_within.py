"""Found within g guesses: how often one of Eve's g best-scored raw rows for a released row is the right one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import derive
from bench.statistics.components import at_least_binomial
from bench.statistics.null import DRAWS, Layout, chance_of_mean
from bench.statistics.pair_score import from_people, pair_score, weighted_mean
from bench.statistics.primary import with_primary
from bench.types import Column, Metric, Score

GUESSES = 5
CURVE = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def found_within(counts: PairCounts, guesses: int) -> float:
    """Share of released rows with a link whose first correct raw row is among so many of its column, ties averaged."""
    return float((counts.ranks <= guesses).double().mean())


@dataclass(frozen=True)
class FoundWithin(Metric[PairEvidence]):
    """Share of released rows of whose five best-scored raw rows one is linked to them; a curve of others as parts."""

    name: ClassVar[str] = "found-within"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "cumulative match characteristic (Phillips et al. 2000), at rank 5"
    column: ClassVar[Column] = Column(
        title="Top-5",
        meaning="The share of images for which the right one is among Eve's five best-scored partners; the same for "
        "other numbers of guesses stands beside it.",
        group="Other attack figures: weakest",
        digits=3,
        chance="5/n for n candidates",
        order=5,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys of the share on the whole release; the interval is over people and keys.

        It is no narrower than that of as many independent answers as there are rows and keys: no hit is no proof.
        Chance: a column of n random scores with c links has one of them among the first g with probability
        1 - C(n - c, g) / C(n, g). p: people exchanged. Parts "within g" are points of the curve, without intervals.
        """
        return with_primary(evidence, partial(_score, evidence))


def _score(evidence: PairEvidence, level: PairLevel) -> Score:
    seed, n = derive(evidence.seed, "null", "found within"), level.full[0].shape[0]
    hits = _chances(Layout.of(evidence, level.links).whole, min(GUESSES, n))
    random = np.random.default_rng(seed)
    draws = torch.tensor([(random.random(len(hits)) < hits).mean() for _ in range(DRAWS)], dtype=torch.float64)
    chance = chance_of_mean(draws, keys=len(level.full), mean=float(hits.mean()), seed=seed)
    found = from_people(evidence, level, _hits, weighted_mean, "share")
    score = pair_score(evidence, level, partial(found_within, guesses=GUESSES), found, chance, seed=seed)
    parts = {
        f"within {guesses}": Score(
            sum(found_within(counts, guesses) for counts in level.full) / len(level.full), None, None, score.n
        )
        for guesses in CURVE
        if guesses <= n
    }
    return replace(at_least_binomial(score, sum(len(counts.ranks) for counts in level.full)), parts=parts)


def _hits(counts: PairCounts) -> Tensor:
    return (counts.ranks <= GUESSES).double()


def _chances(layout: Layout, guesses: int) -> np.ndarray:
    """(c,) by released row with a link, the chance that one of its links is among the first so many of n rows."""
    n, linked = layout.shape[0], np.bincount(layout.links[:, 1])
    linked = linked[linked > 0]
    miss = np.ones(len(linked))
    for guess in range(guesses):
        miss *= np.clip((n - linked - guess) / (n - guess), 0, 1)
    found: np.ndarray = 1 - miss
    return found
