"""Coverage and width of intervals by simulation of the metrics as they are.

People and keys are drawn anew for every repeat. People differ in how easily they are found, keys and the attacker's
trainings in d', raw rows in how alike they are to everybody. The truth of a mean over people and keys is the mean over
all repeats. The ideal width is that of the t interval made with the true components of variance, as they stand in the
repeats, and Satterthwaite's degrees of freedom for them; of counts (ranks) on the scale of logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import t as student

from bench.evidence import PairEvidence, PairLevel, UtilityEvidence
from bench.pairs.person_links import patient_links
from bench.pairs.sweep import Grid, count_grids
from bench.statistics.bootstrap import half_samples
from bench.types import Score
from made.dense_scores import DenseScores, diagonal

LOGARITHMS = ("guesswork", "median-rank")
EFFECT = 0.4
ALIKE = 0.5
"""How much of a person's d' another image of the person has."""


@dataclass(frozen=True)
class Condition:
    """A population of people and keys.

    Args:
        people: Number of people.
        images: Of each person.
        strength: d' of a true pair; 0 is an attack without information.
        effect: Standard deviation of d' over keys.
        training: Standard deviation of d' over the attacker's trainings.
        trainings: Trainings that keys are dealt to; 0 for an attack that trains nothing.
        stand_out: Share of people whose d' is 5 more.
        hubs: Standard deviation of raw rows' likeness to everybody; of every key, half of its variance anew.
        kin: Standard deviation of the likeness of two people, which all pairs of their images share.
        tails: True for people's effects with Student's t distribution of two degrees of freedom.
    """

    people: int = 120
    images: int = 1
    strength: float = 1.5
    effect: float = 0.0
    training: float = 0.0
    trainings: int = 0
    stand_out: float = 0.0
    hubs: float = 0.3
    kin: float = 0.0
    tails: bool = False


CONDITIONS: Mapping[str, Condition] = {
    "null": Condition(strength=0.0),
    "null, few people": Condition(20, strength=0.0),
    "null, several images": Condition(40, 3, strength=0.0),
    "null, hubs": Condition(strength=0.0, hubs=3.0),
    "null, kin": Condition(40, 3, strength=0.0, kin=1.5),
    "plain": Condition(),
    "few people": Condition(20),
    "several images": Condition(40, 3),
    "key effects": Condition(effect=EFFECT),
    "strong key effects": Condition(effect=1.0),
    "several images, kin": Condition(20, 6, kin=1.5),
    "people stand out": Condition(strength=0.5, stand_out=0.05),
    "stand out, key effects": Condition(strength=0.5, stand_out=0.05, effect=EFFECT),
    "heavy tails": Condition(tails=True),
    "several, key effects": Condition(40, 3, effect=EFFECT),
    "two trainings": Condition(effect=EFFECT, training=EFFECT, trainings=2),
    "two trainings, apart": Condition(effect=EFFECT / 2, training=1.0, trainings=2),
    "two trainings, alike": Condition(effect=EFFECT, trainings=2),
    "five trainings": Condition(effect=EFFECT, training=EFFECT, trainings=5),
    "null, two trainings": Condition(strength=0.0, trainings=2),
}


@dataclass(frozen=True)
class Covered:
    """What a simulation found for one figure.

    Args:
        truth: The mean of the figure.
        coverage: Share of the intervals that held it.
        width: Mean width over the ideal; not a number where nothing varied.
        repeats: Number of independent repeats behind it.
        absent: Share of the repeats without an interval.
    """

    truth: float
    coverage: float
    width: float
    repeats: int
    absent: float = 0.0

    @property
    def margin(self) -> float:
        """Half-width of the 95 % binomial interval about the coverage, that of .95 at least."""
        share = min(0.95, max(0.05, self.coverage))
        return 1.96 * math.sqrt(share * (1 - share) / max(1, self.repeats))


def predictions(n: int, effect: float, keys: int, random: np.random.Generator) -> UtilityEvidence:
    """Predictions of a model of d' = 1 for n people, half of whose noise is the same under every key."""
    labels = (random.random(n) < 0.4).astype(np.float32)
    own = random.standard_normal(n)
    scores = [
        (1 + effect * random.standard_normal()) * labels + (own + random.standard_normal(n)) / math.sqrt(2)
        for _ in range(keys)
    ]
    columns = [torch.from_numpy(each[:, None]) for each in scores]
    return UtilityEvidence(
        columns, torch.from_numpy(labels[:, None]), torch.arange(n), ("a",), int(random.integers(2**31))
    )


def pairs(condition: Condition, keys: int, random: np.random.Generator, *, halves: int = 10) -> PairEvidence:
    """Scores of an attack on people of a condition under so many keys, dealt to its trainings."""
    trainings = [number * max(1, condition.trainings) // keys for number in range(keys)]
    subjects = torch.arange(condition.people).repeat_interleave(condition.images)
    n, hubs = len(subjects), random.standard_normal((len(subjects), 1))
    easy = 0.5 * (
        random.standard_t(2, condition.people) if condition.tails else random.standard_normal(condition.people)
    )
    easy += 5 * (random.random(condition.people) < condition.stand_out)
    skill = condition.training * random.standard_normal(max(trainings) + 1)
    links, rows = diagonal(n), torch.arange(n)
    samples = half_samples(subjects, n, halves, seed=int(random.integers(2**31)))
    person = subjects.numpy()
    same = person[:, None] == person
    notions = [links] if condition.images == 1 else [links, patient_links(links, subjects)]
    parts_by_key, full = [], []
    for training in trainings:
        alike = condition.hubs * (hubs + random.standard_normal((n, 1))) / math.sqrt(2)
        matrix = random.standard_normal((n, n)) + alike
        if condition.kin:
            matrix += condition.kin * random.standard_normal((condition.people,) * 2)[person[:, None], person]
        if condition.strength:
            d = condition.strength + easy[person] + condition.effect * random.standard_normal() + skill[training]
            matrix += ALIKE * same * d[:, None]
            matrix[np.arange(n), np.arange(n)] += (1 - ALIKE) * d
        grids = [Grid(half, half, [of[torch.isin(of[:, 0], half)] for of in notions]) for half in samples]
        *parts, whole = count_grids(DenseScores(torch.from_numpy(matrix)), [*grids, Grid(rows, rows, notions)])
        parts_by_key.append(parts)
        full.append(whole)
    levels = [
        PairLevel(
            [[part[at] for part in parts] for parts in parts_by_key], of,
            full=[whole[at] for whole in full], owners=[subjects] * len(trainings),
        )
        for at, of in enumerate(notions)
    ]  # fmt: skip
    drawn = int(random.integers(2**31))
    return PairEvidence(
        (n, n), levels[0], levels[1] if len(levels) > 1 else None, samples, persons=subjects, known=True, draws=drawn,
        resamples="", seed=drawn, trainings=trainings if condition.trainings else (),
    )  # fmt: skip


def covered(scores: Sequence[Score], *, log: bool = False, truth: float | None = None) -> Covered:
    """Coverage and width of scores by repeat; scores without an interval are counted apart."""
    means = np.array([score.value for score in scores])
    truth = float(means.mean()) if truth is None else truth
    bounds = [(score.low, score.high) for score in scores if score.low is not None and score.high is not None]
    absent = 1 - len(bounds) / len(scores)
    if not bounds:
        return Covered(truth, math.nan, math.nan, 0, absent)
    held = [low <= truth <= high for low, high in bounds]
    ends = np.array(bounds, dtype=np.float64)
    widths = np.log(ends[:, 1] / ends[:, 0]) if log else ends[:, 1] - ends[:, 0]
    ideal = _ideal(scores, means) / (truth if log else 1)
    width = float(np.mean(widths) / ideal) if ideal else math.nan
    return Covered(truth, float(np.mean(held)), width, len(held), absent)


def _ideal(scores: Sequence[Score], means: np.ndarray) -> float:
    """Width of the t interval with the true variances."""
    variance, freedom = float(means.var(ddof=1)), float(len(scores))
    figures = [score.replicates.by_key for score in scores if score.replicates is not None]
    if len(figures) == len(scores) and (keys := len(figures[0])) > 1 and variance:
        of_keys = float(np.array(figures).var(axis=1, ddof=1).mean()) / keys
        people = max(0.0, variance - of_keys)
        freedom = variance**2 / (of_keys**2 / (keys - 1) + people**2 / len(scores))
    return 2 * float(student.ppf(0.975, freedom)) * math.sqrt(variance)


def simulated(
    figures: Mapping[str, Callable[..., Score]],
    draw: Callable[[np.random.Generator], object],
    repeats: int,
    *,
    seed: int = 0,
) -> dict[str, list[Score]]:
    """Scores by figure, one a repeat."""
    random = np.random.default_rng(seed)
    scores: dict[str, list[Score]] = {name: [] for name in figures}
    for _ in range(repeats):
        evidence = draw(random)
        for name, figure in figures.items():
            scores[name].append(figure(evidence))
    return scores
