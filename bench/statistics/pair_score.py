"""Scores of pair metrics: value, interval over people and keys, chance.

A figure that depends on the number of rows by a factor at most (an area, a rate, guesses) is resampled by halves of the
people without replacement: it varies about the whole as the whole does about other people (`from_halves`). A figure
over released rows, each ranked among all raw rows (top-1, ranks), is resampled by people with replacement, each with
the results of their released rows (`from_people`): fewer candidates would make an easier game.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean
from typing import TypeAlias

import torch

from bench.contract.replicates import Scale
from bench.evidence import PairEvidence, PairLevel
from bench.pairs.sweep import PairCounts
from bench.statistics.bootstrap import ONE_EACH, draw_weights
from bench.statistics.confidence_intervals import with_interval
from bench.statistics.null_distribution import Chance, permutation_p
from bench.types import Replicates, Score

DRAWS = 200
Figure: TypeAlias = "Callable[[PairCounts], float]"
OverRows: TypeAlias = "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]"
"""Released rows' results (c,) and times counted (draws, c) int64 -> the figure of each draw (draws,)."""


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
        evidence, level: The counts.
        rows: Results (c,) of the released rows with a link, from one key's counts.
        over: The figure over rows; not finite if no row with a link was drawn.
        scale: As in `Replicates`.
    """
    people = int(evidence.persons.max()) + 1
    weights = draw_weights(None, people, DRAWS, seed=evidence.draws)
    own, drawn = [], []
    for counts, owners in zip(level.full, level.owners, strict=True):
        results = rows(counts)
        own.append(float(over(results, torch.ones(1, len(results), dtype=torch.int64))))
        figures = over(results, weights[:, owners])
        drawn.append(torch.where(figures.isfinite(), figures, own[-1]).tolist())
    return Replicates(own, drawn, max(1, min(people, DRAWS) - 1), evidence.resamples, scale)


def pair_score(
    evidence: PairEvidence, level: PairLevel, figure: Figure, replicates: Replicates, chance: Chance, *, seed: int
) -> Score:
    """Mean over keys of a figure of the whole release, beside chance.

    p is exact for any scores (`permutation_p`): the figure of the true links is ranked among those of links with people
    exchanged (rows, if the subjects are unknown).

    Args:
        evidence, level: The counts.
        figure: Of one key's counts.
        replicates: Of the figure.
        chance: Of random scores on the same links.
        seed: For the permutation test.
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
        fmean(replicates.by_key), None, None, level.full[0].shape[0],
        null=chance.mean, null_low=chance.low, null_high=chance.high, p=p, note="; ".join(notes),
    )  # fmt: skip
    return with_interval(score, replicates, over="people")


def weighted_mean(values: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
    """Mean over rows (c,), each counted (draws, c) times."""
    return times.double() @ values / times.sum(dim=1)


def weighted_median(values: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
    """Median over rows (c,), each counted (draws, c) times."""
    order = torch.argsort(values)
    up_to = times[:, order].cumsum(dim=1)
    total = up_to[:, -1:]
    middle = torch.cat(((total + 1) // 2, total // 2 + 1), dim=1)
    places = torch.searchsorted(up_to, middle).clamp(max=len(values) - 1)
    return torch.where(total[:, 0] > 0, values[order][places].mean(dim=1), torch.nan)


def tpr_at(counts: PairCounts, one_in: int) -> float:
    """True positive rate at a false positive rate of 1 / `one_in`.

    The height of the ROC curve, from integer counts; among pairs of one score it is interpolated linearly, as for the
    area.
    """
    above = int(counts.others.sum()) - counts.others.cumsum(0)[1::2]
    tied, allowed = counts.others[1::2], int(counts.others.sum())
    # Everything times one_in, so the allowance is an integer.
    left = allowed - one_in * above
    whole = left >= one_in * tied
    hits = float(counts.linked[whole].sum())
    part = ~whole & (left > 0)
    hits += float(((counts.linked * left)[part].to(torch.float64) / (one_in * tied[part])).sum())
    return hits / int(counts.linked.sum())


PART = "primary constituent"


def with_primary(evidence: PairEvidence, score_at: Callable[[PairLevel], Score]) -> Score:
    """The image-level score; of mixed releases with primary constituents' as part."""
    score = score_at(evidence.images)
    if evidence.primary is None:
        return score
    return replace(score, parts={**score.parts, PART: score_at(evidence.primary)})
