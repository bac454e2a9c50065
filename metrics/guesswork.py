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
from bench.statistics.bootstrap import central
from bench.statistics.confidence_intervals import LEVEL, over_keys
from bench.statistics.order_statistics import median_limit, median_over_keys
from bench.statistics.pair_statistics import (
    DRAWS,
    MEANS,
    Chance,
    Layout,
    chance_of_mean,
    chance_of_median,
    first_hit_within,
    from_halves,
    pair_score,
    simulate_guesswork,
    with_primary,
)
from bench.types import Column, Metric, Score

HALVES, FIRST, MEAN, MOST = "half samples", "first guess", "mean", "upper limit"

NO_MEAN = "no interval: a few keys bound no mean of nearly geometric numbers"
GUESSES = (1, 10, 100)


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
        "guesses from her best score downwards: the median over keys; ties are averaged. 1 means that her first guess "
        "is right.",
        group="Privacy by image: weakest figure over the attacks that count",
        chance="about 0.7 n for n images, with a nearly geometric spread, so a single figure far from it may still be "
        "chance",
        order=5,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Median over keys of guesswork on the whole release.

        The interval is that of order statistics (`bench.statistics.order_statistics`): for these people, it holds the
        median of all keys with 95 % or more, whatever the distribution. Five keys or fewer have none; the note gives
        what their least and largest figure hold. Chance: draws of random scores. p: people exchanged, of the mean.

        Parts: "mean", the paper's mean over keys, without interval, for guesses are nearly geometric and a few keys
        bound no mean of such numbers; "half samples", the paper's mean over random halves of the release as well (if
        released rows are alike, as of k-Same, a half holds half of those behind one form, so that fewer guesses are
        needed); "first guess", the probability that the very first guess is right; "upper limit", a one-sided 95 %
        limit of the median.
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
    by_key, keys = [guesswork(counts) for counts in level.full], len(level.full)
    draws = simulate_guesswork(layout.whole, seed=seed, draws=DRAWS)
    of_mean = chance_of_mean(draws, keys=keys, mean=fmean(map(chance_guesswork, level.full)), seed=seed)
    score = pair_score(
        evidence, level, guesswork, from_halves(evidence, level, guesswork, "log"),
        chance_of_median(draws, keys=keys, seed=seed), better="higher", seed=derive(seed, "permutation"),
    )  # fmt: skip
    parts = {
        MEAN: Score(
            score.value, None, None, score.n, null=of_mean.mean, null_low=of_mean.low, null_high=of_mean.high,
            note=NO_MEAN,
        ),
        HALVES: Score(
            fmean(guesswork(part) for key in level.counts for part in key), None, None, level.counts[0][0].shape[0],
            null=fmean(chance_guesswork(part) for key in level.counts for part in key),
            note=NO_MEAN,
        ),
        FIRST: _first(level),
        MOST: _most(by_key, score.n),
    }  # fmt: skip
    return replace(median_over_keys(score, by_key), parts=parts)


def _most(by_key: Sequence[float], n: int) -> Score:
    """An upper limit of a key's guesses."""
    limit = median_limit(by_key)
    if limit is not None:
        return Score(limit, None, None, n, note="one-sided 95 % limit of the median over keys (order statistics)")
    note = "one-sided 97.5 % limit of the mean, if every guess hits with one probability: too few keys for the median's"
    return Score(waiting_bounds(by_key)[1], None, None, n, note=note)


def _first(level: PairLevel) -> Score:
    links = fmean(int(counts.linked.sum()) / (counts.shape[0] * counts.shape[1]) for counts in level.full)
    return Score(
        fmean(map(first_guess, level.full)), None, None, len(level.full), null=links,
        note="no interval: the mean over keys of a chance; 1 in k where k rows cannot be told apart",
    )  # fmt: skip


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
    """Chance of a right first guess; parts: ten and a hundred guesses."""

    name: ClassVar[str] = "success-within"
    unit: ClassVar[str] = "share of keys"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "the distribution of Syfer's guesswork (definition 2), ties as in appendix A"
    column: ClassVar[Column] = Column(
        title="First guess right",
        meaning="How likely the pair of a raw and a released image that Eve is surest of is right; the same for one of "
        "her ten and of her hundred surest pairs stands beside it.",
        group="Privacy by image: weakest figure over the attacks that count",
        digits=3,
        chance="about 1/n for n images",
        order=4,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys on the whole release; parts: 10 and 100 guesses.

        With distinct scores it is the share of keys with a hit. The interval is that of `mid_p`, each key being one
        try, for these people. Keys with ties count by their probability, which makes it wider than need be.
        Chance: negative hypergeometric (`bench.statistics.pair_statistics.first_hit_within`); its interval is that of
        random scores with as many ties at the best one. p: people exchanged.
        """
        return with_primary(evidence, partial(_success_score, evidence))


def _success_score(evidence: PairEvidence, level: PairLevel) -> Score:
    first, *more = (_success_at(evidence, level, guesses) for guesses in GUESSES)
    return replace(first, parts={f"{guesses} guesses": score for guesses, score in zip(GUESSES[1:], more, strict=True)})


def _success_at(evidence: PairEvidence, level: PairLevel, guesses: int) -> Score:
    seed, figure = derive(evidence.seed, "null", "success", guesses), partial(success_within, guesses=guesses)
    expected = fmean(
        first_hit_within(guesses, counts.shape[0] * counts.shape[1], int(counts.linked.sum())) for counts in level.full
    )
    drawn = [_random_success(counts, guesses, derive(seed, number)) for number, counts in enumerate(level.full)]
    chance = Chance(expected, *central(torch.stack(drawn).mean(dim=0)))
    score = pair_score(
        evidence, level, figure, from_halves(evidence, level, figure, "share"), chance, better="lower", seed=seed
    )
    return over_keys(score, len(level.full))


def _random_success(counts: PairCounts, guesses: int, seed: int) -> torch.Tensor:
    """(MEANS,) float64: one key's figure for random scores with its ties.

    The pairs at the best score are as many as here: if they hold a link, their number is known, else they count as one.
    Each is linked with the same probability, which spreads a little more than drawing without replacement.
    """
    above, best = int(counts.others[-1]), int(counts.others[-2]) + int(counts.linked[-1])
    best, pairs, links = 1 if above else best, counts.shape[0] * counts.shape[1], int(counts.linked.sum())
    random = generator(seed)
    hits = torch.binomial(
        torch.full((MEANS,), float(best), dtype=torch.float64),
        torch.full((MEANS,), links / pairs, dtype=torch.float64), generator=random,
    )  # fmt: skip
    later = first_hit_within(guesses - best, pairs - best, links) if guesses > best else 0.0
    if_missed = (torch.rand(MEANS, generator=random, dtype=torch.float64) < later).double()
    found, places = torch.unique(hits, return_inverse=True)
    within = [first_hit_within(min(guesses, best), best, int(each)) for each in found]
    return torch.where(hits > 0, torch.tensor(within, dtype=torch.float64)[places], if_missed)
