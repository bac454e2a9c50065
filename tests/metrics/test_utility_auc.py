from __future__ import annotations

import pytest
import torch

from bench.evidence import UtilityEvidence
from bench.types import NotApplicable
from metrics.utility_auc import UtilityAUC, auc


def evidence(quality: float, n: int = 300, keys: int = 2) -> UtilityEvidence:
    random = torch.Generator().manual_seed(4)
    labels = (torch.rand(n, 2, generator=random) < 0.4).float()
    labels[:20, 1] = torch.nan
    scores = [quality * labels.nan_to_num(0) + torch.randn(n, 2, generator=random) for _ in range(keys)]
    return UtilityEvidence(scores, labels, torch.arange(n) // 3, ("a", "b"), 7)


def test_a_perfect_model_has_auc_one() -> None:
    assert UtilityAUC()(evidence(100.0)).value == 1.0


def test_a_useless_model_sits_in_the_null_interval() -> None:
    score = UtilityAUC()(evidence(0.0))
    assert score.null_low is not None
    assert score.null_high is not None
    assert score.null_low < score.value < score.null_high


def test_the_interval_holds_the_figure_and_every_finding_is_a_part() -> None:
    score = UtilityAUC()(evidence(1.0))
    assert set(score.parts) == {"a", "b"}
    assert score.low is not None
    assert score.high is not None
    assert score.low < score.value < score.high
    assert score.value == pytest.approx((score.parts["a"].value + score.parts["b"].value) / 2)


def test_unknown_labels_do_not_count() -> None:
    scores, labels = torch.tensor([0.9, 0.1, 0.5]), torch.tensor([1.0, 0.0, torch.nan])
    assert auc(scores, labels) == 1.0


def test_weights_repeat_rows() -> None:
    scores, labels = torch.tensor([0.2, 0.1, 0.3]), torch.tensor([1.0, 0.0, 0.0])
    assert auc(scores, labels, torch.tensor([1, 3, 1])) == pytest.approx(0.75)


def test_one_class_alone_is_not_applicable() -> None:
    one = UtilityEvidence([torch.rand(4, 1)], torch.ones(4, 1), None, ("a",), 0)
    with pytest.raises(NotApplicable, match="positive and negative"):
        UtilityAUC()(one)
