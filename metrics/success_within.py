"""Success within g guesses: the chance that one of them is right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import torch

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import derive, generator
from bench.statistics.confidence_intervals import at_least_binomial
from bench.statistics.pair_statistics import (
    DRAWS,
    chance_of_mean,
    first_hit_within,
    from_halves,
    pair_score,
    with_primary,
)
from bench.types import Column, Metric, Score

GUESSES = (1, 10, 100)
SHOWN = 10


def success_within(counts: PairCounts, guesses: int) -> float:
    """The chance that one of the first `guesses` pairs is right.

    From the highest score down, ties in random order.
    """
    above, tied, correct = int(counts.others[-1]), int(counts.others[-2]), int(counts.linked[-1])
    left = guesses - above
    return 0.0 if left <= 0 else first_hit_within(min(left, tied + correct), tied + correct, correct)


@dataclass(frozen=True)
class SuccessWithin(Metric[PairEvidence]):
    """Chance of a hit in ten guesses; parts: one and a hundred."""

    name: ClassVar[str] = "success-within"
    unit: ClassVar[str] = "share of keys"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "the distribution of Syfer's guesswork (definition 2), ties as in appendix A"
    column: ClassVar[Column] = Column(
        title="Success within 10 guesses",
        meaning="How likely one of the ten pairs of a raw and a released image that Eve is surest of is right; with "
        "one guess and with a hundred beside it.",
        group="Other attack figures: weakest",
        digits=3,
        chance="about 10/n for n images",
        order=20,
    )
    on_request: ClassVar[bool] = True

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys on the whole release.

        With distinct scores it is the share of keys with a hit. The interval is no narrower than that of as many
        independent tries as there are keys (Clopper and Pearson). Chance: negative hypergeometric
        (`bench.statistics.pair_statistics.first_hit_within`). p: people exchanged.
        """
        return with_primary(evidence, partial(_score, evidence))


def _score(evidence: PairEvidence, level: PairLevel) -> Score:
    parts = {_named(guesses): _at(evidence, level, guesses) for guesses in GUESSES}
    return replace(parts[_named(SHOWN)], parts=parts)


def _named(guesses: int) -> str:
    return f"{guesses} guess{'es' * (guesses > 1)}"


def _at(evidence: PairEvidence, level: PairLevel, guesses: int) -> Score:
    seed, figure = derive(evidence.seed, "null", "success", guesses), partial(success_within, guesses=guesses)
    expected = fmean(
        first_hit_within(guesses, counts.shape[0] * counts.shape[1], int(counts.linked.sum())) for counts in level.full
    )
    drawn = torch.rand(DRAWS, generator=generator(seed), dtype=torch.float64) < expected
    chance = chance_of_mean(drawn.double(), keys=len(level.full), mean=expected, seed=seed)
    score = pair_score(evidence, level, figure, from_halves(evidence, level, figure, "share"), chance, seed=seed)
    return at_least_binomial(score, len(level.full))
