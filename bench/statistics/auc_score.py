"""Mean AUC: how well a classifier finds the findings in test rows, averaged over findings and keys, as a score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import torch

from bench.evidence import UtilityEvidence
from bench.seeds import derive
from bench.statistics.components import never_certain, with_interval
from bench.statistics.resampling import ONE_EACH, draw_weights, name_of
from bench.statistics.roc import auc, aucs
from bench.types import NotApplicable, Replicates, Score

DRAWS = 200
FEWEST = 20
"""Draws in which both classes must occur for a figure to have an interval."""


def auc_score(evidence: UtilityEvidence) -> Score:
    """Mean over findings and keys, each finding as a part; the interval is over test people and keys.

    Every key has a Bob of its own, trained from a seed of its own: what trainings vary counts as the keys'. The log
    odds of an AUC are taken for normal.

    Raises:
        NotApplicable: No finding has both classes among the test rows.
    """
    columns = judged(evidence)
    if not columns:
        raise NotApplicable("utility needs a finding with positive and negative test rows, and there is none")
    weights = draw_weights(evidence.subjects, len(evidence.labels), DRAWS, seed=derive(evidence.seed, "utility"))
    by_key = torch.stack([_under(evidence, k, torch.ones_like(weights[:1]))[:, 0] for k in columns])
    drawn = torch.stack([_under(evidence, k, weights) for k in columns])
    fewer = [fewer_people(evidence.labels[:, k], evidence.subjects) for k in columns]
    name = name_of(weights)
    parts = {
        evidence.findings[k]: _score(evidence, [k], own, row, [people], name)
        for k, own, row, people in zip(columns, by_key, drawn, fewer, strict=True)
    }
    whole = _score(evidence, columns, by_key.mean(dim=0), drawn.nanmean(dim=0), fewer, name)
    return replace(whole, parts=parts)


def mean_score(scores: Sequence[Score], note: str) -> Score:
    """The mean of several `auc_score`s of the same test people and keys, with the interval of that mean.

    Bounds of chance are averaged as if the figures were fully dependent, which is the widest.
    """
    made = Score(
        fmean(score.value for score in scores), None, None, scores[0].n, null=0.5,
        null_low=fmean(score.null_low for score in scores if score.null_low is not None),
        null_high=fmean(score.null_high for score in scores if score.null_high is not None), note=note,
    )  # fmt: skip
    found = [score.replicates for score in scores if score.replicates is not None]
    if len(found) < len(scores):
        return replace(made, note=f"{note}; no interval: too few test people of one class")
    by_key = torch.tensor([each.by_key for each in found], dtype=torch.float64).mean(dim=0)
    drawn = torch.tensor([each.resampled for each in found], dtype=torch.float64).mean(dim=0)
    mean = Replicates(by_key.tolist(), drawn.tolist(), fmean(each.degrees for each in found), found[0].people, "share")
    return with_interval(made, mean, over="test people")


def _under(evidence: UtilityEvidence, k: int, weights: torch.Tensor) -> torch.Tensor:
    """(keys, draws) AUCs of a finding."""
    return torch.stack([aucs(scores[:, k], evidence.labels[:, k], weights) for scores in evidence.scores])


def judged(evidence: UtilityEvidence) -> list[int]:
    """The columns of the findings that have both classes among the test rows."""
    return [
        k for k in range(len(evidence.findings)) if auc(evidence.scores[0][:, k], evidence.labels[:, k]) is not None
    ]


def fewer_people(labels: torch.Tensor, subjects: torch.Tensor | None) -> int:
    """People with a row of the rarer class: they decide how sure an AUC is."""
    people = torch.arange(len(labels)) if subjects is None else subjects
    return min(len(torch.unique(people[labels == value])) for value in (0, 1))


def degrees_of(fewer: int) -> float:
    """Degrees of freedom of an AUC's spread over people, from `fewer_people`."""
    return float(min(max(1, 2 * (fewer - 1)), DRAWS - 1))


def _score(
    evidence: UtilityEvidence,
    columns: list[int],
    by_key: torch.Tensor,
    drawn: torch.Tensor,
    fewer: Sequence[int],
    name: str,
) -> Score:
    """The mean over some findings, with what chance gives.

    Findings share their images: their deviations are averaged as if fully dependent, which is the widest.
    """
    labels = evidence.labels[:, columns]
    sizes = [(int((column == 1).sum()), int((column == 0).sum())) for column in labels.T]
    sd = fmean(1.96 * math.sqrt((yes + no + 1) / (12 * yes * no)) for yes, no in sizes)
    rows = len(labels) if len(columns) > 1 else sum(sizes[0])
    score = Score(
        float(by_key.mean()), None, None, rows, null=0.5, null_low=max(0.0, 0.5 - sd), null_high=min(1.0, 0.5 + sd),
        note="" if evidence.subjects is not None else ONE_EACH,
    )  # fmt: skip
    return over_test_people(score, by_key, drawn, fewer, name)


def over_test_people(score: Score, by_key: torch.Tensor, drawn: torch.Tensor, fewer: Sequence[int], name: str) -> Score:
    """The score of a share with its interval over test people and keys.

    Args:
        score: Its value is the mean over keys.
        by_key, drawn: (keys,) figures, and (keys, draws) of them on resamples of the people; NaN where undefined.
        fewer: `fewer_people` of each finding behind it.
        name: That of the resamples (`name_of`).
    """
    kept = drawn[:, ~drawn.isnan().any(dim=0)]
    if kept.shape[1] < FEWEST:
        return replace(score, note="no interval: too few test people of one class")
    found = Replicates(by_key.tolist(), kept.tolist(), fmean(map(degrees_of, fewer)), name, "share")
    return never_certain(with_interval(score, found, over="test people"), min(fewer))
