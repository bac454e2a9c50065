from __future__ import annotations

import torch

from bench.evidence import DecodingEvidence, LearningEvidence, UtilityEvidence
from metrics.decoding_error import DecodingError
from metrics.utility_auc import LearningCurve, UtilityAUC


def images(n: int = 20, seed: int = 0) -> torch.Tensor:
    return torch.rand(n, 1, 4, 4, generator=torch.Generator().manual_seed(seed))


def evidence(decoded: torch.Tensor) -> DecodingEvidence:
    raw = images()
    return DecodingEvidence(raw, decoded, raw.mean(dim=0), torch.arange(20) // 2, 1)


def test_perfect_decoding_has_no_error() -> None:
    score = DecodingError()(evidence(images()))
    assert (score.value, score.low, score.high) == (0, 0, 0)


def test_the_mean_image_has_error_one() -> None:
    assert abs(DecodingError()(evidence(images().mean(dim=0).expand(20, -1, -1, -1))).value - 1) < 1e-12


def test_half_of_each_deviation_lost_is_a_quarter_of_the_variance() -> None:
    mean = images().mean(dim=0)
    assert abs(DecodingError()(evidence((images() + mean) / 2)).value - 0.25) < 1e-6


def test_a_learning_curve_is_the_mean_of_its_parts_and_tells_each() -> None:
    labels = (torch.arange(40) % 2)[:, None].float()
    sure, blind = labels.clone(), torch.zeros(40, 1)
    parts = {
        share: UtilityEvidence([scores], labels, None, ("finding",), 1)
        for share, scores in ((0.5, sure), (0.25, blind))
    }
    score = LearningCurve()(LearningEvidence(parts))
    assert score.value == 0.75
    assert score.parts["0.5 of the release"].value == UtilityAUC()(parts[0.5]).value == 1
    assert score.parts["0.25 of the release"].value == 0.5
