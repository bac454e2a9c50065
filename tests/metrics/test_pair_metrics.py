from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch

from bench.evidence import PairEvidence, PairLevel
from bench.types import NotApplicable
from metrics.guesswork import Guesswork, PatientGuesswork
from metrics.pairs import count
from metrics.patients import patient_links
from metrics.reid_auc import PatientReidAUC, ReidAUC
from metrics.resampling import draw_weights, half_samples
from metrics.top_1 import Top1
from tests.metrics.dense_scores import DenseScores, diagonal

N, KEYS, SAMPLES = 60, 5, 6
METRICS = [Guesswork(), ReidAUC(), PatientReidAUC(), Top1()]


@cache
def evidence(signal: float, seed: int = 0) -> PairEvidence:
    """Random scores with `signal` added to the true pairs."""
    random = torch.Generator().manual_seed(seed)
    subjects = torch.arange(N) // 3
    samples = half_samples(subjects, N, SAMPLES, seed=1)
    images, patients = [], []
    for _ in range(KEYS):
        scores = DenseScores(torch.randn(N, N, generator=random, dtype=torch.float64) + signal * torch.eye(N))
        grids = [(scores.take(rows, rows), rows) for rows in samples]
        images.append([count(grid, diagonal(len(rows))) for grid, rows in grids])
        patients.append([count(grid, patient_links(diagonal(len(rows)), subjects[rows])) for grid, rows in grids])
    links = diagonal(N)
    return PairEvidence(
        (N, N), PairLevel(images, links), PairLevel(patients, patient_links(links, subjects)), samples, 5
    )


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_random_scores_sit_in_the_null_interval_as_often_as_they_should(metric: object) -> None:
    inside = 0
    for seed in range(40):
        score = metric(evidence(0.0, seed))  # type: ignore[operator]
        inside += score.null_low <= score.value <= score.null_high
    # 95 % of 40 are 38; below 33 a binomial falls in 4 of a thousand cases.
    assert inside >= 33


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_perfect_attack_leaves_the_null_interval(metric: object) -> None:
    score = metric(evidence(50.0))  # type: ignore[operator]
    assert not score.null_low <= score.value <= score.null_high
    if metric.better == "higher" or "patient" not in metric.name:  # type: ignore[attr-defined]
        assert score.value == 1.0


def test_guesswork_by_person_claims_no_null() -> None:
    score = PatientGuesswork()(evidence(0.0))
    assert (score.null, score.null_low, score.null_high) == (None, None, None)
    assert "noise" in score.note


@pytest.mark.parametrize("metric", [PatientGuesswork(), PatientReidAUC()], ids=lambda metric: metric.name)
def test_patient_figures_need_subjects(metric: object) -> None:
    with pytest.raises(NotApplicable, match="who is who"):
        metric(replace(evidence(0.0), patients=None))  # type: ignore[operator]


def test_half_samples_hold_half_of_the_people_whole() -> None:
    subjects = torch.tensor([3, 3, 1, 1, 1, 8, 9, 9])
    for rows in half_samples(subjects, 8, 5, seed=0):
        people = set(subjects[rows].tolist())
        assert len(people) == 2
        assert len(rows) == int(torch.isin(subjects, torch.tensor(sorted(people))).sum())


def test_bootstrap_weights_move_people_together() -> None:
    subjects = torch.tensor([0, 0, 1, 2, 2])
    weights = draw_weights(subjects, 5, 50, seed=0)
    assert torch.equal(weights[:, 0], weights[:, 1])
    assert torch.equal(weights[:, 3], weights[:, 4])
    assert bool((weights[:, [0, 2, 3]].sum(dim=1) == 3).all())
