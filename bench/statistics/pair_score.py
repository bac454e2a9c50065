"""A figure on pair scores as a score: of the whole release, with an interval over people and keys, beside chance.

Where a figure does not depend on how many rows there are (an area, a rate), or by a factor alone (guesses), the same
figure on halves of the people, drawn without replacement, varies about the whole as much as the whole does about other
people (`from_halves`). Where it is taken over released rows, each looked for among all raw rows (top-1, ranks), people
are drawn with replacement, and each brings what its released rows gave (`from_people`): half of the rows would be
another game.

Rates of an attack on pairs at a threshold, from integer counts.

A figure for mixed releases by both notions: any constituent of a released row, and the one that weighs most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

import torch

from bench.contract.replicates import Scale
from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.statistics.bootstrap import ONE_EACH, draw_weights
from bench.statistics.confidence_intervals import with_interval
from bench.statistics.null_distribution import Chance, permutation_p
from bench.types import Replicates, Score

DRAWS = 200
Figure = Callable[[PairCounts], float]
OverRows = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""From what released rows gave (c,), and how often each counts (draws, c) int64: the figure of each draw (draws,)."""


def from_halves(evidence: PairEvidence, level: PairLevel, figure: Figure, scale: Scale) -> Replicates:
    """Replicates by halves of the people."""
    resampled = [[figure(part) for part in key] for key in level.counts]
    own = [figure(counts) for counts in level.full]
    return Replicates(own, resampled, max(1, len(resampled[0]) - 1), evidence.resamples, scale)


def from_people(
    evidence: PairEvidence, level: PairLevel, rows: Callable[[PairCounts], torch.Tensor], over: OverRows, scale: Scale
) -> Replicates:
    """Replicates by people drawn with replacement.

    Args:
        evidence, level: What was counted.
        rows: What each released row with a link gave (c,), of one key's counts.
        over: Takes the figure over rows; not finite where nobody with a link was drawn.
        scale: As in `Replicates`.
    """
    people = int(evidence.persons.max()) + 1
    weights = draw_weights(None, people, DRAWS, seed=evidence.draws)
    own, drawn = [], []
    for counts, owners in zip(level.full, level.owners, strict=True):
        given = rows(counts)
        own.append(float(over(given, torch.ones(1, len(given), dtype=torch.int64))))
        found = over(given, weights[:, owners])
        drawn.append(torch.where(found.isfinite(), found, own[-1]).tolist())
    return Replicates(own, drawn, max(1, min(people, DRAWS) - 1), evidence.resamples, scale)


def pair_score(
    evidence: PairEvidence, level: PairLevel, figure: Figure, found: Replicates, chance: Chance, *, seed: int
) -> Score:
    """The mean over keys of a figure of the whole release, with its interval, beside what random scores give.

    p is exact for any scores (`permutation_p`): people are exchanged, or rows where nobody is known, and the figure of
    the true links is ranked among those of the exchanged.

    Args:
        evidence, level: What was counted.
        figure: Of one key's counts.
        found: Its replicates.
        chance: What random scores give on the same links.
        seed: For the choices of the test.
    """
    p = None
    if level.permuted:
        own = [figure(counts) for counts in level.whole]
        p = permutation_p(own, [[figure(counts) for counts in key] for key in level.permuted], seed=seed)
    notes = ["chance: random scores"]
    notes.append("p: people exchanged" if p is not None else "no p: too few people with as many images to exchange")
    if not evidence.known:
        notes.append(ONE_EACH)
    score = Score(
        fmean(found.by_key), None, None, level.full[0].shape[0],
        null=chance.mean, null_low=chance.low, null_high=chance.high, p=p, note="; ".join(notes),
    )  # fmt: skip
    return with_interval(score, found, over="people")


def weighted_mean(given: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
    """The mean over rows (c,), each counted as often as it was drawn (draws, c)."""
    return times.double() @ given / times.sum(dim=1)


def weighted_median(given: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
    """The median over rows (c,), each counted as often as it was drawn (draws, c): the mean of the middle two."""
    order = torch.argsort(given)
    up_to = times[:, order].cumsum(dim=1)
    total = up_to[:, -1:]
    middle = torch.cat(((total + 1) // 2, total // 2 + 1), dim=1)
    places = torch.searchsorted(up_to, middle).clamp(max=len(given) - 1)
    return torch.where(total[:, 0] > 0, given[order][places].mean(dim=1), torch.nan)


def tpr_at(counts: PairCounts, one_in: int) -> float:
    """Share of the linked pairs found when one unlinked pair in `one_in` may be taken for linked.

    The height of the ROC curve at 1 / one_in, from integer counts. Where the allowance ends among pairs of one score,
    the curve runs straight between the corners, as it does for the area: the linked ones count in proportion.
    """
    above = int(counts.others.sum()) - counts.others.cumsum(0)[1::2]
    tied, allowed = counts.others[1::2], int(counts.others.sum())
    # Everything times one_in, so that the allowance is an integer too.
    left = allowed - one_in * above
    whole = left >= one_in * tied
    found = float(counts.linked[whole].sum())
    part = ~whole & (left > 0)
    found += float(((counts.linked * left)[part].to(torch.float64) / (one_in * tied[part])).sum())
    return found / int(counts.linked.sum())


PART = "primary constituent"


def with_primary(evidence: PairEvidence, score_at: Callable[[PairLevel], Score]) -> Score:
    """The score between images; where rows are mixed, the primary constituent alone as correct is a part of it."""
    score = score_at(evidence.images)
    if evidence.primary is None:
        return score
    return replace(score, parts={**score.parts, PART: score_at(evidence.primary)})
