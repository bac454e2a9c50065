"""How often 95 % intervals hold the truth, and how wide they are, by simulation of the metrics as they are.

People and keys are drawn anew for every repeat: people differ in how easily they are found, keys by `EFFECT` in d' (or
not at all), raw rows in how alike they are to everybody. Of K keys the mean over keys is the figure; its truth is the
mean over all repeats. The ideal width is that of the t interval made with the true components of variance, as they
stand in the repeats, and Satterthwaite's degrees of freedom for them; of counts (guesses, ranks) on the scale of
logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import t as student

from bench.evidence import PairEvidence, PairLevel, UtilityEvidence
from bench.pairs.sweep import Grid, count_grids
from bench.statistics.bootstrap import half_samples
from bench.types import Metric, Score
from made.dense_scores import DenseScores, diagonal
from metrics.guesswork import Guesswork
from metrics.pair_roc import ReidAUC, TPRAtLowFPR
from metrics.ranks import MedianRank, Top1

LOGARITHMS = ("guesswork", "median-rank")
KEYS, MOST = (1, 3, 5, 10), 10
EFFECT = 0.4
PAIRS: tuple[Metric[PairEvidence], ...] = (ReidAUC(), Top1(), MedianRank(), TPRAtLowFPR(), Guesswork())


@dataclass(frozen=True)
class Covered:
    """What a simulation found for one metric and number of keys.

    Args:
        truth: The mean of the figure.
        coverage: Share of the intervals that held it.
        width: Mean width over the ideal; not a number where nothing varied.
    """

    truth: float
    coverage: float
    width: float


def predictions(n: int, effect: float, random: np.random.Generator) -> UtilityEvidence:
    """Predictions of a model of d' = 1 for n people, half of whose noise is the same under every key."""
    labels = (random.random(n) < 0.4).astype(np.float32)
    own = random.standard_normal(n)
    scores = [
        (1 + effect * random.standard_normal()) * labels + (own + random.standard_normal(n)) / math.sqrt(2)
        for _ in range(MOST)
    ]
    columns = [torch.from_numpy(each[:, None]) for each in scores]
    return UtilityEvidence(
        columns, torch.from_numpy(labels[:, None]), torch.arange(n), ("a",), int(random.integers(2**31))
    )


def pairs(n: int, effect: float, strength: float, random: np.random.Generator) -> PairEvidence:
    """Scores of an attack of that strength (d' of a true pair) on n people."""
    easy, hubs = 0.5 * random.standard_normal(n), 0.3 * random.standard_normal((n, 1))
    links, rows = diagonal(n), torch.arange(n)
    halves = half_samples(None, n, 10, seed=int(random.integers(2**31)))
    counts, full = [], []
    for _ in range(MOST):
        matrix = random.standard_normal((n, n)) + hubs
        found = strength + easy + effect * random.standard_normal() if strength else 0.0
        matrix[np.arange(n), np.arange(n)] += found
        grids = [Grid(half, half, [links[half]]) for half in halves] + [Grid(rows, rows, [links])]
        *parts, whole = (of for (of,) in count_grids(DenseScores(torch.from_numpy(matrix)), grids))
        counts.append(parts)
        full.append(whole)
    level = PairLevel(counts, links, full=full, owners=[rows] * MOST)
    drawn = int(random.integers(2**31))
    return PairEvidence((n, n), level, None, halves, persons=rows, known=True, draws=drawn, resamples="", seed=drawn)


def under(evidence: PairEvidence | UtilityEvidence, keys: slice) -> PairEvidence | UtilityEvidence:
    """The evidence under some of its keys."""
    if isinstance(evidence, UtilityEvidence):
        return UtilityEvidence(
            evidence.scores[keys], evidence.labels, evidence.subjects, evidence.findings, evidence.seed
        )
    level = evidence.images
    cut = PairLevel(level.counts[keys], level.links, full=level.full[keys], owners=level.owners[keys])
    return PairEvidence(
        evidence.shape, cut, None, evidence.samples, persons=evidence.persons, known=True, draws=evidence.draws,
        resamples="", seed=evidence.seed,
    )  # fmt: skip


def covered(scores: Sequence[Sequence[Score]], keys: int, *, log: bool) -> Covered:
    """Coverage and width of scores by repeat, then by group of keys."""
    figures = np.array([[score.replicates.by_key for score in repeat] for repeat in scores])  # type: ignore[union-attr]
    means = figures.mean(axis=2)
    truth = float(means.mean())
    held = [score.low <= truth <= score.high for repeat in scores for score in repeat]  # type: ignore[operator]
    flat = [score for repeat in scores for score in repeat]
    bounds = np.array([(score.low, score.high) for score in flat], dtype=np.float64)
    widths = np.log(bounds[:, 1] / bounds[:, 0]) if log else bounds[:, 1] - bounds[:, 0]
    variance = float(means.var(ddof=1))
    if variance == 0:
        return Covered(truth, float(np.mean(held)), math.nan)
    freedom = float(len(scores))
    if keys > 1:
        of_keys = float(figures.var(axis=2, ddof=1).mean()) / keys
        people = max(0.0, variance - of_keys)
        freedom = variance**2 / (of_keys**2 / (keys - 1) + people**2 / len(scores))
    ideal = 2 * student.ppf(0.975, freedom) * math.sqrt(variance) / (truth if log else 1)
    return Covered(truth, float(np.mean(held)), float(np.mean(widths) / ideal))


def simulated(
    metrics: Sequence[Metric[PairEvidence] | Metric[UtilityEvidence]],
    draw: Callable[[np.random.Generator], PairEvidence | UtilityEvidence],
    repeats: int,
) -> dict[str, dict[int, Covered]]:
    """Coverage and width of intervals by metric and number of keys."""
    scores: dict[str, dict[int, list[list[Score]]]] = {m.name: {keys: [] for keys in KEYS} for m in metrics}
    random = np.random.default_rng(0)
    for _ in range(repeats):
        evidence = draw(random)
        for metric in metrics:
            for keys, found in scores[metric.name].items():
                starts = range(0, MOST - keys + 1, keys)
                found.append([metric(under(evidence, slice(at, at + keys))) for at in starts])  # type: ignore[arg-type]
    return {
        name: {keys: covered(found, keys, log=name in LOGARITHMS) for keys, found in by_keys.items()}
        for name, by_keys in scores.items()
    }
