"""Guesswork: how many guesses Eve needs for her first correct pair (Syfer, definition 2 and appendix A)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import ClassVar, Literal

import numpy as np
import torch
from scipy.stats import binom
from torch import Tensor

from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.seeds import derive
from bench.statistics.null import (
    DRAWS,
    Layout,
    Null,
    exchanged_share,
    null_of_mean,
    permutation_p,
    simulate_guesswork,
    tries_until_held,
)
from bench.statistics.primary import with_primary
from bench.statistics.resampling import LEVELS
from bench.statistics.spread import mean, spread
from bench.types import Column, Metric, Score


def guesswork(counts: PairCounts) -> float:
    """Rank of the first correct pair when all pairs are guessed from the highest score down, averaged over ties.

    With t the best linked score: #{S > t} + (#{S = t} + 1) / (#{S = t and linked} + 1).
    """
    above, tied, correct = int(counts.others[-1]), int(counts.others[-2]), int(counts.linked[-1])
    return above + (tied + correct + 1) / (correct + 1)


def chance_guesswork(counts: PairCounts) -> float:
    """Expected guesswork when scores are random, with or without ties: (n m + 1) / (p + 1).

    Any p of the n m pairs may be linked: averaging over ties takes nothing from the mean of random orders.
    """
    return (counts.shape[0] * counts.shape[1] + 1) / (int(counts.linked.sum()) + 1)


@dataclass(frozen=True)
class Guesswork(Metric[PairEvidence]):
    """Guesses until a released image is tied to its raw image for the first time."""

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
        """Mean over keys and data samples; the interval is their spread.

        Null and p: random distinct scores, drawn exactly for the same links and samples (`simulate_guesswork`); below
        what draws can resolve, p is a bound in closed form (`early_hit_bound`).
        With links of exchanged people at hand, see `clustered_null`.

        Its part "all rows" is guesswork on the whole grid. Where released rows are alike (k-Same), a half sample holds
        half of those behind one form, so that fewer guesses are needed than among all.
        """
        return with_primary(evidence, partial(_score, evidence))


@dataclass(frozen=True)
class PatientGuesswork(Metric[PairEvidence]):
    """Guesses until a released image is tied to any raw image of the same person for the first time."""

    name: ClassVar[str] = "patient-guesswork"
    unit: ClassVar[str] = "guesses"
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    source: ClassVar[str] = "Syfer, definition 2, with the person as the match"
    column: ClassVar[Column] = Column(
        title="Patient guesswork",
        meaning="Guesswork where any image of the same patient counts as a correct match.",
        group="Privacy by patient: weakest figure",
        chance="fewer guesses than for images; how many depends on how alike a patient's images score: compare "
        "with noise",
        order=5,
    )

    def __call__(self, evidence: PairEvidence) -> Score:
        """As `Guesswork`. Images of a person score alike, so hits come in clusters: independent scores are no null.

        Without links of exchanged people there is therefore no null.
        """
        level = evidence.level("patient")
        if level.permuted:
            return _score(evidence, level)
        score = spread(_figures(level), None, n=level.counts[0][0].shape[0])
        return replace(score, note=f"{score.note}; chance depends on how alike a person's images score: see `noise`")


def _figures(level: PairLevel) -> list[list[float]]:
    return [[guesswork(part) for part in key] for key in level.counts]


def _score(evidence: PairEvidence, level: PairLevel) -> Score:
    figures = _figures(level)
    layout = Layout.of(evidence, level.links)
    seed = derive(evidence.seed, "null")
    if level.permuted:
        null = clustered_null(level, layout, seed=seed)
    else:
        value, keys = mean(figures), len(level.counts)
        expected = fmean(chance_guesswork(part) for key in level.counts for part in key)
        null = null_of_mean(
            simulate_guesswork(layout, seed=seed, draws=DRAWS), value, keys=keys, mean=expected, seed=seed
        )
        if value < expected and null.p <= 2 / DRAWS:
            null = replace(null, p=min(null.p, 2 * early_hit_bound(layout, value, keys=keys)))
    score = spread(figures, null, n=level.counts[0][0].shape[0])
    return replace(score, parts={"all rows": _whole(level)}) if level.full else score


def _whole(level: PairLevel) -> Score:
    figures = [guesswork(counts) for counts in level.full]
    note = "no interval: one figure a key" if len(figures) == 1 else f"the whole release; range of {len(figures)} keys"
    low, high = (None, None) if len(figures) == 1 else (min(figures), max(figures))
    return Score(fmean(figures), low, high, level.full[0].shape[0], note=note)


def early_hit_bound(layout: Layout, value: float, *, keys: int) -> float:
    """A bound on the chance that mean guesswork over `keys` keys and the data samples is at most `value`.

    Then some data sample's guesses over all keys sum to at most g = keys * value. Each of them hits with a chance of at
    most h = p / (n m - g), so that `keys` hits have at most the chance of as many successes in g trials, and the
    data samples together at most their sum: samples * P(Binomial(g, h) >= keys).
    """
    guesses = math.floor(keys * value + 1e-9)
    left = layout.pairs - guesses
    if (left <= layout.inside.sum(axis=1)).any():
        return 1.0
    chances = binom.sf(keys - 1, guesses, layout.inside.sum(axis=1) / left)
    return min(1.0, float(chances.sum()))


def clustered_null(level: PairLevel, layout: Layout, *, seed: int) -> Null:
    """The null of scores that stay as they are while people are exchanged (`bench.pairs.people.exchanged_links`).

    p is an exact permutation test of mean guesswork on the whole grids, see `bench.statistics.null.permutation_p`.
    Mean and interval are those of half samples: guesses up to a first hit on the whole grid are drawn from the permuted
    ones of the same key, then up to the next hit, and so on; a sample takes its share of the guesses up to the first
    hit whose row it holds. That treats later hits as as hard to find as the first, samples of guesses as random, and
    the links of people who cannot be exchanged, which are hits too, as those of the others.
    """
    own = [guesswork(counts) for counts in level.whole]
    permuted = [[guesswork(counts) for counts in key] for key in level.permuted]
    means = _half_means(layout, permuted, exchanged_share(level), seed=seed)
    low, high = torch.quantile(means, LEVELS).tolist()
    return Null(float(means.mean()), low, high, permutation_p(own, permuted, seed=derive(seed, "permutation")))


def _half_means(
    layout: Layout, permuted: Sequence[Sequence[float]], exchanged: Sequence[float], *, seed: int
) -> Tensor:
    """Draws of guesswork's mean over keys and half samples, from its values on whole grids by key."""
    random = np.random.default_rng(seed)
    links = len(layout.links)
    unlinked = layout.shape[0] * layout.shape[1] - links
    if unlinked == 0:
        return torch.ones(DRAWS, dtype=torch.float64)
    share = (layout.pairs - layout.inside.sum(axis=1)) / unlinked
    total, tries = np.zeros(DRAWS), tries_until_held(layout.inside)
    for key, part in zip(permuted, exchanged, strict=True):
        # So many fewer misses come before the first of all links than before the first of a part of them.
        fewer = (part * links + 1) / (links + 1)
        misses = ((random.choice(np.asarray(key), (DRAWS, tries)) - 1) * fewer).cumsum(axis=1)
        held = layout.inside[:, random.integers(links, size=(DRAWS, tries))]
        passed = np.take_along_axis(misses[None], held.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
        total += 1 + random.binomial(np.rint(passed).astype(np.int64), share[:, None]).mean(axis=0)
    return torch.from_numpy(total / len(permuted))
