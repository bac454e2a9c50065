"""Guesswork (Syfer, definition 2), and the chance of success within some guesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import scipy
import torch

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import derive, generator
from bench.statistics.confidence_intervals import LEVEL, at_least_binomial
from bench.statistics.pair_statistics import (
    DRAWS,
    Layout,
    chance_of_mean,
    first_hit_within,
    from_halves,
    pair_score,
    simulate_guesswork,
    with_primary,
)
from bench.types import Column, Metric, Score

HALVES, FIRST = "half samples", "first guess"

GUESSES = (1, 10, 100)
SHOWN = 10


def guesswork(counts: PairCounts) -> float:
    """Rank of the first correct pair, best score first, averaged over ties.

    With t the best linked score: #{S > t} + (#{S = t} + 1) / (#{S = t and linked} + 1).
    """
    above, tied, correct = int(counts.others[-1]), int(counts.others[-2]), int(counts.linked[-1])
    return above + (tied + correct + 1) / (correct + 1)


def first_guess(counts: PairCounts) -> float:
    """The chance that the first guess is right, ties at random."""
    above, tied, correct = int(counts.others[-1]), int(counts.others[-2]), int(counts.linked[-1])
    return 0.0 if above else correct / (correct + tied)


def chance_guesswork(counts: PairCounts) -> float:
    """Expected guesswork of random scores, with or without ties.

    It is (n m + 1) / (p + 1). Any p of the n m pairs may be linked: averaging over ties takes nothing from the mean of
    random orders.
    """
    return (counts.shape[0] * counts.shape[1] + 1) / (int(counts.linked.sum()) + 1)


def most_guesses(counts: PairCounts) -> int:
    """Guesswork n m - p + 1, with all linked pairs last."""
    return int(counts.others.sum()) + 1


@dataclass(frozen=True)
class Guesswork(Metric[PairEvidence]):
    """Guesses until a released image is tied to its raw image."""

    name: ClassVar[str] = "guesswork"
    unit: ClassVar[str] = "guesses"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Syfer, definition 2 and appendix A"
    column: ClassVar[Column] = Column(
        title="Guesswork",
        meaning="How many guesses Eve needs until the first correct pair of a raw and a released image, when she "
        "guesses from her best score downwards; ties are averaged. 1 means that her first guess is right.",
        group="Privacy by image: weakest figure over the attacks that count",
        chance="about n for n images, with a nearly geometric spread, so a single figure far from n may still be "
        "chance",
        order=5,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys of guesswork on the whole release.

        Its part "half samples" is the paper's figure. Its part "first guess" is the chance that the very first guess is
        right.

        The paper takes the mean over random halves of the release as well: if released rows are alike (k-Same), a
        half holds half of those behind one form, so that fewer guesses are needed than among all.

        The interval is that of its logarithm (`bench.statistics.pair_statistics`), and no narrower than that of as many
        first hits as there are keys, if every guess hits with one probability (`waiting_bounds`): keys that all take
        one guess do not show that the next one will. It covers less than it says, about four times in five, if few
        keys take many times the guesses of the rest. No bound is below 1 or above n m - p + 1.
        Chance: (n m + 1) / (p + 1), and draws of random scores. p: people exchanged.
        """
        return with_primary(evidence, partial(_guesswork_score, evidence))


@dataclass(frozen=True)
class PatientGuesswork(Metric[PairEvidence]):
    """Guesses until a released image is tied to its person's images."""

    name: ClassVar[str] = "patient-guesswork"
    unit: ClassVar[str] = "guesses"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Syfer, definition 2, with the person as the match"
    column: ClassVar[Column] = Column(
        title="Patient guesswork",
        meaning="Guesswork where any image of the same patient counts as a correct match.",
        group="Privacy by patient: weakest figure",
        chance="fewer guesses than for images: every image of a patient is a match of all the others'",
        order=5,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """As `Guesswork`, with a p that allows for clusters of hits.

        Images of one person score alike, so hits come in clusters; random scores have none.
        """
        return _guesswork_score(evidence, evidence.level("patient"))


def _guesswork_score(evidence: PairEvidence, level: PairLevel) -> Score:
    layout, seed = Layout.of(evidence, level.links), derive(evidence.seed, "null")
    score = _part(evidence, level, [[counts] for counts in level.full], layout.whole, seed=seed)
    low, high = waiting_bounds([guesswork(counts) for counts in level.full])
    assert score.low is not None
    assert score.high is not None
    score = replace(
        score, low=min(score.low, low), high=min(max(score.high, high), fmean(map(most_guesses, level.full)))
    )
    halves = _part(evidence, level, level.counts, layout, seed=seed)
    return replace(score, parts={FIRST: _first(level), HALVES: halves})


def _first(level: PairLevel) -> Score:
    links = fmean(int(counts.linked.sum()) / (counts.shape[0] * counts.shape[1]) for counts in level.full)
    return Score(
        fmean(map(first_guess, level.full)), None, None, len(level.full), null=links,
        note="no interval: the mean over keys of a chance; 1 in k where k rows cannot be told apart",
    )  # fmt: skip


def _part(
    evidence: PairEvidence, level: PairLevel, counts: Sequence[Sequence[PairCounts]], layout: Layout, *, seed: int
) -> Score:
    """The mean over keys and over the counted parts of the release."""
    chance = chance_of_mean(
        simulate_guesswork(layout, seed=seed, draws=DRAWS), keys=len(counts),
        mean=fmean(chance_guesswork(part) for key in counts for part in key), seed=seed,
    )  # fmt: skip
    replicates = from_halves(evidence, level, guesswork, "log")
    replicates = replace(replicates, by_key=[fmean(map(guesswork, key)) for key in counts])
    score = pair_score(
        evidence, level, guesswork, replicates, chance, better="higher", seed=derive(seed, "permutation")
    )
    most = [fmean(map(most_guesses, key)) for key in counts]
    low, high, ahead, behind = (
        None if bound is None else min(max(1.0, bound), cap)
        for bound, cap in (
            (score.low, fmean(most)), (score.high, fmean(most)),
            (score.prediction_low, max(most)), (score.prediction_high, max(most)),
        )
    )  # fmt: skip
    return replace(score, n=counts[0][0].shape[0], low=low, high=high, prediction_low=ahead, prediction_high=behind)


def waiting_bounds(guesses: Sequence[float]) -> tuple[float, float]:
    """95 % bounds for the mean number of guesses to a hit.

    They come from the guesses of several keys, every guess being alike. The guesses of K keys are the trials up to the
    K-th hit: the exact bounds of a hit's probability (negative binomial, as Clopper and Pearson's) are inverted.

    >>> [round(bound, 2) for bound in waiting_bounds([1, 1, 1, 1, 1])]
    [1.0, 2.09]
    """
    hits, trials = len(guesses), max(len(guesses), round(sum(guesses)))
    least = float(scipy.stats.beta.ppf(1 - LEVEL, hits, trials - hits + 1))
    most = float(scipy.stats.beta.ppf(LEVEL, hits, trials - hits)) if trials > hits else 1.0
    return 1 / most, 1 / least


def success_within(counts: PairCounts, guesses: int) -> float:
    """The chance of a right pair among the first, ties at random."""
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
        return with_primary(evidence, partial(_success_score, evidence))


def _success_score(evidence: PairEvidence, level: PairLevel) -> Score:
    parts = {_guesses(guesses): _success_at(evidence, level, guesses) for guesses in GUESSES}
    return replace(parts[_guesses(SHOWN)], parts=parts)


def _guesses(guesses: int) -> str:
    return f"{guesses} guess{'es' * (guesses > 1)}"


def _success_at(evidence: PairEvidence, level: PairLevel, guesses: int) -> Score:
    seed, figure = derive(evidence.seed, "null", "success", guesses), partial(success_within, guesses=guesses)
    expected = fmean(
        first_hit_within(guesses, counts.shape[0] * counts.shape[1], int(counts.linked.sum())) for counts in level.full
    )
    drawn = torch.rand(DRAWS, generator=generator(seed), dtype=torch.float64) < expected
    chance = chance_of_mean(drawn.double(), keys=len(level.full), mean=expected, seed=seed)
    score = pair_score(
        evidence, level, figure, from_halves(evidence, level, figure, "share"), chance, better="lower", seed=seed
    )
    return at_least_binomial(score, len(level.full))
