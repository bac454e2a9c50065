"""ROC of pairs: ReID AUC, TPR at low FPR, and advantage."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np
import scipy
import torch

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import derive
from bench.statistics.confidence_intervals import at_least_binomial, never_certain
from bench.statistics.pair_statistics import (
    DRAWS,
    Chance,
    Layout,
    among_exchanges,
    chance_of_mean,
    from_halves,
    pair_score,
    tpr_at,
    with_primary,
)
from bench.types import Column, Metric, NotApplicable, Score

RATE = 1000
LOWER = 10_000

CURVE = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
"""Inverses of the false-positive rates at which the ROC curve is given: as good as even on a log axis."""

ENOUGH = 2000
"""Links from which on the lead of random scores has its limiting form: it shrinks with the root of their number."""


def reid_auc(counts: PairCounts) -> float:
    """Probability of a linked above an unlinked pair (Mann-Whitney, ties half)."""
    others = counts.others.cumsum(0)
    below, tied = others[0:-1:2], counts.others[1::2]
    twice_wins = int((counts.linked * (2 * below + tied)).sum())
    unlinked = int(others[-1])
    if unlinked == 0:
        raise ValueError("ReID AUC needs at least one unlinked pair, got a grid in which every pair is linked")
    return twice_wins / (2 * int(counts.linked.sum()) * unlinked)


def chance_sd(layout: Layout) -> float:
    """Standard deviation of one key's mean AUC under random scores.

    The mean is over its data samples; scores are independent and distinct. Of samples s and t with p linked and q
    unlinked pairs each, a linked and b unlinked ones in both, the AUCs have the covariance (a b + a q_s q_t + b p_s
    p_t) / (12 p_s p_t q_s q_t): two comparisons covary by 1/4 if they are the same, by 1/12 if they share one pair.
    With s = t it is Mann and Whitney's (p + q + 1) / (12 p q).
    """
    inside, rows, cols = (part.astype(np.float64) for part in (layout.inside, layout.rows, layout.cols))
    linked = inside @ inside.T
    unlinked = (rows @ rows.T) * (cols @ cols.T) - linked
    p, q = np.diag(linked), np.diag(unlinked)
    pp, qq = np.outer(p, p), np.outer(q, q)
    return math.sqrt(float(((linked * unlinked + linked * qq + unlinked * pp) / (12 * pp * qq)).mean()))


@dataclass(frozen=True)
class ReidAUC(Metric[PairEvidence]):
    """Area under the ROC curve of telling linked from unlinked pairs."""

    name: ClassVar[str] = "reid-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Syfer, section 5"
    column: ClassVar[Column] = Column(
        title="ReID AUC",
        meaning="The probability that Eve scores a true pair of a raw and a released image above a wrong one; "
        "ties count half.",
        group="Privacy by image: weakest figure over the attacks that count",
        digits=3,
        chance="0.5",
        order=10,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """Mean over keys of the area on the whole release.

        The interval is over people and keys. Chance: .5 and a normal with the exact deviation of independent distinct
        scores (`chance_sd`), keys being independent. p: people exchanged.

        Raises:
            NotApplicable: All pairs of a data sample are linked.
        """
        return _among_exchanges(evidence, "image", with_primary(evidence, partial(_reid_auc_score, evidence)))


@dataclass(frozen=True)
class PatientReidAUC(Metric[PairEvidence]):
    """Area under the ROC curve: one person's pairs against two people's."""

    name: ClassVar[str] = "patient-reid-auc"
    unit: ClassVar[str] = "AUC"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "Syfer, section 5, with the person as the match"
    column: ClassVar[Column] = Column(
        title="Patient ReID AUC",
        meaning="ReID AUC where any image of the same patient counts as a correct match.",
        group="Privacy by patient: weakest figure",
        digits=3,
        chance="0.5",
        order=10,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """As `ReidAUC`.

        Raises:
            NotApplicable: The people are unknown, or a data sample holds only one.
        """
        return _among_exchanges(evidence, "patient", _reid_auc_score(evidence, evidence.level("patient")))


def _among_exchanges(evidence: PairEvidence, level: Literal["image", "patient"], score: Score) -> Score:
    """The score, among exchanges of people if it is the primary figure."""
    exchanged = evidence.exchanged
    return score if exchanged is None or exchanged.level != level else among_exchanges(score, exchanged)


def _reid_auc_score(evidence: PairEvidence, level: PairLevel) -> Score:
    if any(int(part.others.sum()) == 0 for key in [*level.counts, level.full] for part in key):
        raise NotApplicable("an AUC needs wrong pairs, and in some data sample all pairs are right")
    width = 1.96 * chance_sd(Layout.of(evidence, level.links).whole) / math.sqrt(len(level.full))
    chance = Chance(0.5, max(0.0, 0.5 - width), min(1.0, 0.5 + width))
    replicates = from_halves(evidence, level, reid_auc, "share")
    score = pair_score(
        evidence, level, reid_auc, replicates, chance, better="lower", seed=derive(evidence.seed, "null")
    )
    return never_certain(score, int(evidence.persons.max()) + 1)


def chance_tpr(unlinked: int, one_in: int) -> float:
    """Expected TPR of random distinct scores.

    It is (x + 1) / (q + 1), with x = floor(q / one_in) of the q unlinked pairs allowed. That is the chance of a linked
    pair to stand before the first unlinked one that is not allowed any more.
    """
    return (unlinked // one_in + 1) / (unlinked + 1)


@dataclass(frozen=True)
class TPRAtLowFPR(Metric[PairEvidence]):
    """Share of true pairs found at a false-positive rate of 0.1 %."""

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
        return with_primary(evidence, partial(_tpr_score, evidence))


def _tpr_score(evidence: PairEvidence, level: PairLevel) -> Score:
    fewest = min(int(counts.others.sum()) for counts in level.full)
    if fewest < RATE:
        raise NotApplicable(f"a rate of one in {RATE} needs as many wrong pairs, got {fewest}")
    score = _tpr_at(evidence, level, RATE)
    if fewest < LOWER:
        return score
    return replace(score, parts={f"one in {LOWER}": _tpr_at(evidence, level, LOWER)})


def _tpr_at(evidence: PairEvidence, level: PairLevel, one_in: int) -> Score:
    seed = derive(evidence.seed, "null", "tpr", one_in)
    draws = simulate_tpr(Layout.of(evidence, level.links).whole, one_in=one_in, seed=seed, draws=DRAWS)
    expected = fmean(chance_tpr(int(counts.others.sum()), one_in) for counts in level.full)
    chance = chance_of_mean(draws, keys=len(level.full), mean=expected, seed=seed)
    figure = partial(tpr_at, one_in=one_in)
    score = pair_score(
        evidence, level, figure, from_halves(evidence, level, figure, "share"), chance, better="lower", seed=seed
    )
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
    means = np.empty(draws)
    for draw, bar in enumerate(bars):
        place = random.random(len(layout.links))
        near = np.flatnonzero(place < bar.max())
        means[draw] = ((layout.inside[:, near] & (place[near] < bar[:, None])).sum(axis=1) / linked).mean()
    return torch.from_numpy(means)


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
        return with_primary(evidence, partial(_advantage_score, evidence))


def _advantage_score(evidence: PairEvidence, level: PairLevel) -> Score:
    fewest = min(int(counts.others.sum()) for counts in level.full)
    if not fewest:
        raise NotApplicable("a false positive rate needs a wrong pair, and there is none")
    seed = derive(evidence.seed, "null", "advantage")
    draws = _advantage_draws(len(Layout.of(evidence, level.links).whole.links), seed=seed)
    chance = chance_of_mean(draws, keys=len(level.full), mean=float(draws.mean()), seed=seed)
    score = pair_score(
        evidence, level, advantage, from_halves(evidence, level, advantage, "share"), chance, better="lower", seed=seed
    )
    parts = {
        f"1 false in {one_in}": Score(fmean(tpr_at(counts, one_in) for counts in level.full), None, None, score.n)
        for one_in in CURVE
        if one_in <= fewest
    }
    return replace(score, parts=parts)


def _advantage_draws(links: int, *, seed: int) -> torch.Tensor:
    """(DRAWS,) float64: the advantage of so many links among uniform scores."""
    random, few = np.random.default_rng(seed), min(links, ENOUGH)
    shares = np.arange(1, few + 1) / few
    drawn = torch.tensor([(shares - np.sort(random.random(few))).max().clip(0) for _ in range(DRAWS)])
    return drawn * math.sqrt(few / links)
