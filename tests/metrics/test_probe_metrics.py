from __future__ import annotations

import math

import pytest
import torch

from bench.evidence import DetectionEvidence, ProbeEvidence, UtilityEvidence
from bench.types import NotApplicable
from metrics.probe_auc import DRAWS, ProbeAUC
from metrics.utility_auc import DetectionAUC


def evidence(scores: torch.Tensor, marked: torch.Tensor, subjects: torch.Tensor | None = None) -> UtilityEvidence:
    return UtilityEvidence([scores.float()[:, None]], marked.float()[:, None], subjects, ("mark",), 3)


def sure(quality: float, n: int = 200) -> UtilityEvidence:
    marked = torch.arange(n) % 2
    return evidence(quality * marked + torch.randn(n, generator=torch.Generator().manual_seed(1)), marked)


def test_the_probe_that_shows_best_counts_and_each_stands_beside_its_raw_image() -> None:
    score = ProbeAUC()(
        ProbeEvidence({"a": sure(0.5), "b": sure(2.0), "c": sure(0.0)}, {"a": sure(100.0), "b": sure(100.0)})
    )
    assert set(score.parts) == {"a", "b", "c", "a, raw image", "b, raw image"}
    assert score.value == score.parts["b"].value
    assert score.parts["a, raw image"].value == 1
    assert score.p is not None
    assert score.parts["b"].p is not None
    assert score.p == 3 * score.parts["b"].p
    assert score.note.startswith("worst of 3 probes: b")


def test_the_null_is_that_of_marks_dealt_anew() -> None:
    # Of the six ways to mark two of four rows, one gives an AUC of 1 and one of 0.
    score = ProbeAUC()(ProbeEvidence({"a": evidence(torch.tensor([1, 2, 3, 4]), torch.tensor([0, 0, 1, 1]))}, {}))
    assert score.value == 1
    assert score.p is not None
    assert abs(score.p - 1 / 6) < 4 * math.sqrt(5 / 36 / DRAWS)
    assert (score.null, score.null_low, score.null_high) == (0.5, 0, 1)


def test_many_images_of_few_people_prove_little() -> None:
    # Two people, told apart in all of their twenty images: half of all deals would show the same.
    marked = torch.arange(40) // 20
    score = ProbeAUC()(ProbeEvidence({"a": evidence(torch.arange(40), marked, subjects=marked)}, {}))
    assert score.value == 1
    assert score.p is not None
    assert score.p > 0.45


def test_a_detector_that_says_the_same_of_all_rows_has_half() -> None:
    score = ProbeAUC()(ProbeEvidence({"a": evidence(torch.ones(50), torch.arange(50) % 2)}, {}))
    assert (score.value, score.null_low, score.null_high, score.p) == (0.5, 0.5, 0.5, 1)


def test_detection_is_that_of_the_release_with_the_raw_images_beside_it() -> None:
    score = DetectionAUC()(DetectionEvidence(released=sure(1.0), original=sure(100.0)))
    assert score.low is not None
    assert score.high is not None
    assert score.low < score.value < score.high < 1
    assert score.parts["raw image"].value == 1
    assert score.n == 200


def test_detection_among_normal_rows_alone_is_not_applicable() -> None:
    normal = evidence(torch.rand(5), torch.zeros(5))
    with pytest.raises(NotApplicable, match="positive and negative"):
        DetectionAUC()(DetectionEvidence(normal, normal))
