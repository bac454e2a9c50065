"""ROC areas and other figures of predictions, with intervals over test people.

Areas are counted in integers, under any weights of the rows. A figure is a mean over findings and keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TypeAlias

import torch

from bench.evidence import UtilityEvidence
from bench.seeds import derive
from bench.statistics.bootstrap import ONE_EACH, draw_weights, name_of
from bench.statistics.confidence_intervals import never_certain, with_interval
from bench.types import NotApplicable, Replicates, Score

NUMBERS = 2_000_000  # of a block of weights: 16 MB


def auc(scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None = None) -> float | None:
    """ROC area as `aucs`; None if one class is left."""
    weights = torch.ones(len(labels), dtype=torch.int64) if weights is None else weights
    value = float(aucs(scores, labels, weights[None]))
    return None if math.isnan(value) else value


def aucs(scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """ROC areas (b,) under row weights (b, n), or NaN.

    Counted in integers (Mann and Whitney 1947): every positive row wins over the negative rows below it and half
    wins over those it ties with. Raises ValueError for labels other than 1, 0 and NaN, and scores that are not
    finite.
    """
    known = ~labels.isnan()
    truth, scores = labels[known], scores[known]
    if not bool(((truth == 0) | (truth == 1)).all()) or not bool(scores.isfinite().all()):
        raise ValueError("expected labels that are 1, 0 or NaN, and finite scores for the known ones")
    places, positive = known.nonzero()[:, 0], truth == 1
    tied = torch.unique(scores, return_inverse=True)[1]
    levels = int(tied.amax()) + 1 if len(tied) else 1
    areas = torch.empty(len(weights), dtype=torch.float64)
    for part in torch.split(torch.arange(len(weights)), max(1, NUMBERS // max(1, len(places)))):
        times = weights[part][:, places]
        yes, no = (
            times.new_zeros(len(part), levels).index_add_(1, tied[side], times[:, side])
            for side in (positive, ~positive)
        )
        below = no.cumsum(dim=1)  # and tied
        wins = (yes * (2 * below - no)).sum(dim=1)
        areas[part] = wins.double() / (2 * yes.sum(dim=1) * below[:, -1]).double()
    return areas


DRAWS = 200
FEWEST = 20
"""Draws in which both classes must occur for a figure to have an interval."""


def auc_score(evidence: UtilityEvidence) -> Score:
    """Mean AUC over findings and keys, each finding as a part.

    The interval is over test people and keys, for log odds taken for normal. What trainings vary counts as the
    keys'. Raises NotApplicable if no finding has both classes among the test rows.
    """
    if not judged(evidence):
        raise NotApplicable("utility needs a finding with positive and negative test rows, and there is none")
    score = finding_figure(evidence, aucs, chance=lambda _: 0.5, partial=True)
    parts = {name: _beside_chance(evidence, [name], part) for name, part in score.parts.items()}
    rows = score.n if len(parts) > 1 else next(iter(parts.values())).n
    return replace(_beside_chance(evidence, list(parts), score), n=rows, parts=parts)


def mean_score(scores: Sequence[Score], note: str) -> Score:
    """Mean of several `auc_score`s of the same people and keys.

    Bounds of chance are averaged as if fully dependent, the widest case.
    """
    average = Score(
        fmean(score.value for score in scores), None, None, scores[0].n, null=0.5,
        null_low=fmean(score.null_low for score in scores if score.null_low is not None),
        null_high=fmean(score.null_high for score in scores if score.null_high is not None), note=note,
    )  # fmt: skip
    replicates = [score.replicates for score in scores if score.replicates is not None]
    if len(replicates) < len(scores):
        return replace(average, note=f"{note}; no interval: too few test people of one class")
    by_key = torch.tensor([part.by_key for part in replicates], dtype=torch.float64).mean(dim=0)
    drawn = torch.tensor([part.resampled for part in replicates], dtype=torch.float64).mean(dim=0)
    mean = Replicates(
        by_key.tolist(), drawn.tolist(), fmean(part.degrees for part in replicates), replicates[0].people, "share"
    )
    return with_interval(average, mean, over="test people")


def judged(evidence: UtilityEvidence) -> list[int]:
    """Columns of the findings with both classes among the test rows."""
    return [
        k for k in range(len(evidence.findings)) if auc(evidence.scores[0][:, k], evidence.labels[:, k]) is not None
    ]


def fewer_people(labels: torch.Tensor, subjects: torch.Tensor | None) -> int:
    """Number of people with a row of the rarer class."""
    people = torch.arange(len(labels)) if subjects is None else subjects
    return min(len(torch.unique(people[labels == value])) for value in (0, 1))


def degrees_of(fewer: int) -> float:
    """Degrees of freedom of an AUC's spread over people, from `fewer_people`."""
    return float(min(max(1, 2 * (fewer - 1)), DRAWS - 1))


def _beside_chance(evidence: UtilityEvidence, findings: Sequence[str], score: Score) -> Score:
    """The score with bounds of chance, averaged as if fully dependent."""
    labels = evidence.labels[:, [evidence.findings.index(name) for name in findings]]
    sizes = [(int((column == 1).sum()), int((column == 0).sum())) for column in labels.T]
    sd = fmean(1.96 * math.sqrt((yes + no + 1) / (12 * yes * no)) for yes, no in sizes)
    return replace(score, null_low=max(0.0, 0.5 - sd), null_high=min(1.0, 0.5 + sd))


def over_test_people(score: Score, by_key: torch.Tensor, drawn: torch.Tensor, fewer: Sequence[int], name: str) -> Score:
    """A share's score with its interval over test people and keys.

    `by_key` (keys,) and `drawn` (keys, draws) are its figures, NaN where undefined; `fewer` are the `fewer_people`
    of each finding, `name` is `name_of` the resamples.
    """
    defined = drawn[:, ~drawn.isnan().any(dim=0)]
    if defined.shape[1] < FEWEST:
        return replace(score, note="no interval: too few test people of one class")
    replicates = Replicates(by_key.tolist(), defined.tolist(), fmean(map(degrees_of, fewer)), name, "share")
    return never_certain(with_interval(score, replicates, over="test people"), min(fewer))


Figure: TypeAlias = "Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]"
"""Of scores (n,) float64, labels (n,) that are 1 or 0, and weights (b, n) int64: (b,) float64, NaN where undefined."""


def finding_figure(
    evidence: UtilityEvidence, figure: Figure, *, chance: Callable[[float], float] | None, note: str = "",
    partial: bool = False,
) -> Score:  # fmt: skip
    """Mean figure over findings and keys, each finding as a part.

    The interval is over test people and keys.

    Args:
        evidence: Unknown labels are left out.
        figure: Between 0 and 1.
        chance: Figure of a model without images, given the share of positive rows; None if undefined.
        note: Added to the interval's note.
        partial: A resample in which a finding has no figure counts by the others.

    Raises:
        NotApplicable: No finding has both classes among the test rows.
    """
    columns = judged(evidence)
    if not columns:
        raise NotApplicable("expected a finding with positive and negative test rows, and there is none")
    weights = draw_weights(evidence.subjects, len(evidence.labels), DRAWS, seed=derive(evidence.seed, "utility"))
    every = torch.cat((torch.ones_like(weights[:1]), weights))
    by_finding = [_figures(evidence, figure, k, every) for k in columns]
    fewer = [fewer_people(evidence.labels[:, k], evidence.subjects) for k in columns]
    nulls = [None if chance is None else chance(float(evidence.labels[:, k].nanmean())) for k in columns]
    notes = [part for part in (note, "" if evidence.subjects is not None else ONE_EACH) if part]
    name, text = name_of(weights), "; ".join(notes)
    parts = {
        evidence.findings[k]: _scored(figures, [people], null, int((~evidence.labels[:, k].isnan()).sum()), name, text)
        for k, figures, people, null in zip(columns, by_finding, fewer, nulls, strict=True)
    }
    figures, null = torch.stack(by_finding), _mean(nulls)
    mean = figures.nanmean(dim=0) if partial else figures.mean(dim=0)
    return replace(_scored(mean, fewer, null, len(evidence.labels), name, text), parts=parts)


def ranked(scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Positive and negative rows scoring at least each distinct score.

    Cumulative counts (b, levels) int64, from the highest score down; arguments as of `Figure`.
    """
    level = torch.unique(-scores, return_inverse=True)[1]
    count = int(level.max()) + 1
    positive, negative = (
        weights.new_zeros(len(weights), count).index_add_(1, level[side], weights[:, side]).cumsum(dim=1)
        for side in (labels == 1, labels == 0)
    )
    return positive, negative


def require_probabilities(evidence: UtilityEvidence) -> None:
    """Raise NotApplicable if predictions are not probabilities."""
    if not all(bool(((scores >= 0) & (scores <= 1)).all()) for scores in evidence.scores):
        raise NotApplicable("predictions are scores, no probabilities: the published classifier gives others")


def _figures(evidence: UtilityEvidence, figure: Figure, k: int, weights: torch.Tensor) -> torch.Tensor:
    known = ~evidence.labels[:, k].isnan()
    labels, times = evidence.labels[known, k], weights[:, known]
    return torch.stack([figure(scores[known, k].double(), labels, times) for scores in evidence.scores])


def _scored(figures: torch.Tensor, fewer: Sequence[int], null: float | None, rows: int, name: str, note: str) -> Score:
    """Score of (keys, 1 + draws) figures; column 0 is all people."""
    score = Score(float(figures[:, 0].mean()), None, None, rows, null=null, note=note)
    return over_test_people(score, figures[:, 0], figures[:, 1:], fewer, name)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
