"""Advantage: the largest lead of an attack's true over its false positives."""

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

CURVE = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
"""Inverses of the false-positive rates at which the ROC curve is given: as good as even on a log axis."""

ENOUGH = 2000
"""Links from which on the lead of random scores has its limiting form: it shrinks with the root of their number."""


def advantage(counts: PairCounts) -> float:
    """The largest true minus false positive rate over thresholds (Youden's J)."""
    linked = torch.zeros_like(counts.others)
    linked[1::2] = counts.linked
    false, true = (part.flip(0).cumsum(0).double() / part.sum() for part in (counts.others, linked))
    return max(0.0, float((true - false).max()))


@dataclass(frozen=True)
class Advantage(Metric[PairEvidence]):
    """Largest lead of true over false positive rate; ROC points as parts."""

    name: ClassVar[str] = "advantage"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Yeom et al. 2018, Privacy risk in machine learning, definition 4; on pairs"
    column: ClassVar[Column] = Column(
        title="Advantage",
        meaning="The most by which the share of true pairs that Eve names exceeds the share of false pairs that she "
        "names with them, at any threshold; points of the ROC curve stand beside it.",
        group="Other attack figures: weakest",
        digits=3,
        chance="a little above 0, for the threshold is the best one",
        order=25,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys on the whole release, with interval and p.

        The interval is over people and keys. p: people exchanged. Chance: draws of random scores; wrong pairs are many,
        so their rate at a threshold is taken as exact. Parts "1 false in N" are true positive rates at the false
        positive rate 1 / N, without intervals.

        Raises:
            NotApplicable: No pair is wrong.
        """
        return with_primary(evidence, partial(_score, evidence))


def _score(evidence: PairEvidence, level: PairLevel) -> Score:
    fewest = min(int(counts.others.sum()) for counts in level.full)
    if not fewest:
        raise NotApplicable("a false positive rate needs a wrong pair, and there is none")
    seed = derive(evidence.seed, "null", "advantage")
    draws = _draws(len(Layout.of(evidence, level.links).whole.links), seed=seed)
    chance = chance_of_mean(draws, keys=len(level.full), mean=float(draws.mean()), seed=seed)
    score = pair_score(evidence, level, advantage, from_halves(evidence, level, advantage, "share"), chance, seed=seed)
    parts = {
        f"1 false in {one_in}": Score(fmean(tpr_at(counts, one_in) for counts in level.full), None, None, score.n)
        for one_in in CURVE
        if one_in <= fewest
    }
    return replace(score, parts=parts)


def _draws(links: int, *, seed: int) -> torch.Tensor:
    """(DRAWS,) float64: the advantage of so many links among uniform scores."""
    random, few = np.random.default_rng(seed), min(links, ENOUGH)
    shares = np.arange(1, few + 1) / few
    drawn = torch.tensor([(shares - np.sort(random.random(few))).max().clip(0) for _ in range(DRAWS)])
    return drawn * math.sqrt(few / links)
