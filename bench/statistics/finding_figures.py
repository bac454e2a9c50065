"""A figure of a finding's predictions, averaged over findings and keys, as a score with its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

import torch

from bench.evidence import UtilityEvidence
from bench.seeds import derive
from bench.statistics.auc_score import DRAWS, fewer_people, judged, over_test_people
from bench.statistics.resampling import ONE_EACH, draw_weights, name_of
from bench.types import NotApplicable, Score

Figure = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Of scores (n,) float64, labels (n,) that are 1 or 0, and weights (b, n) int64: (b,) float64, NaN where undefined."""


def finding_figure(
    evidence: UtilityEvidence, figure: Figure, *, chance: Callable[[float], float] | None, note: str = ""
) -> Score:
    """The mean over findings and keys, each finding as a part; the interval is over test people and keys.

    Args:
        evidence: Unknown labels are left out.
        figure: Between 0 and 1.
        chance: What a model without any image comes to, by the share of positive rows; None where that says nothing.
        note: What to say beside the interval.

    Raises:
        NotApplicable: No finding has both classes among the test rows.
    """
    columns = judged(evidence)
    if not columns:
        raise NotApplicable("expected a finding with positive and negative test rows, and there is none")
    weights = draw_weights(evidence.subjects, len(evidence.labels), DRAWS, seed=derive(evidence.seed, "utility"))
    every = torch.cat((torch.ones_like(weights[:1]), weights))
    by_finding = [_under(evidence, figure, k, every) for k in columns]
    fewer = [fewer_people(evidence.labels[:, k], evidence.subjects) for k in columns]
    nulls = [None if chance is None else chance(float(evidence.labels[:, k].nanmean())) for k in columns]
    notes = [part for part in (note, "" if evidence.subjects is not None else ONE_EACH) if part]
    name, said = name_of(weights), "; ".join(notes)
    parts = {
        evidence.findings[k]: _scored(found, [people], null, int((~evidence.labels[:, k].isnan()).sum()), name, said)
        for k, found, people, null in zip(columns, by_finding, fewer, nulls, strict=True)
    }
    mean, null = torch.stack(by_finding).mean(dim=0), _mean(nulls)
    return replace(_scored(mean, fewer, null, len(evidence.labels), name, said), parts=parts)


def ranked(scores: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How many positive and negative rows score at least as high as each distinct score, from the highest down.

    Args:
        scores, labels, weights: As of `Figure`.

    Returns:
        Two (b, levels) int64; rows with one score stand or fall together.
    """
    level = torch.unique(-scores, return_inverse=True)[1]
    count = int(level.max()) + 1
    positive, negative = (
        weights.new_zeros(len(weights), count).index_add_(1, level[side], weights[:, side]).cumsum(dim=1)
        for side in (labels == 1, labels == 0)
    )
    return positive, negative


def require_probabilities(evidence: UtilityEvidence) -> None:
    """Raises NotApplicable where predictions are no probabilities."""
    if not all(bool(((scores >= 0) & (scores <= 1)).all()) for scores in evidence.scores):
        raise NotApplicable("predictions are scores, no probabilities: the published classifier gives others")


def _under(evidence: UtilityEvidence, figure: Figure, k: int, weights: torch.Tensor) -> torch.Tensor:
    known = ~evidence.labels[:, k].isnan()
    labels, times = evidence.labels[known, k], weights[:, known]
    return torch.stack([figure(scores[known, k].double(), labels, times) for scores in evidence.scores])


def _scored(found: torch.Tensor, fewer: Sequence[int], null: float | None, rows: int, name: str, note: str) -> Score:
    """A score of (keys, 1 + draws) figures, the first of all people."""
    score = Score(float(found[:, 0].mean()), None, None, rows, null=null, note=note)
    return over_test_people(score, found[:, 0], found[:, 1:], fewer, name)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
