from __future__ import annotations

import time

import pytest
import torch
from sklearn.metrics import roc_auc_score

from bench.evidence import UtilityEvidence
from bench.statistics import classification_scores as roc
from bench.statistics.classification_scores import auc, aucs
from bench.types import NotApplicable
from metrics.utility_auc import UtilityAUC


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


@pytest.mark.parametrize("levels", [2, 5, 10_000])
def test_areas_under_many_weights_are_those_of_scikit_learn(levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roc, "NUMBERS", 200)  # several blocks of weights
    random = torch.Generator().manual_seed(levels)
    scores = torch.randint(levels, (60,), generator=random) / 7
    labels = (torch.rand(60, generator=random) < 0.3).float()
    labels[::9] = torch.nan
    weights = torch.randint(3, (9, 60), generator=random)
    weights[4] = (labels == 1).long()
    found = aucs(scores, labels, weights)
    assert found[4].isnan()
    for number in set(range(9)) - {4}:
        rows = ~labels.isnan() & (weights[number] > 0)
        expected = roc_auc_score(labels[rows], scores[rows], sample_weight=weights[number, rows])
        assert float(found[number]) == pytest.approx(expected, abs=1e-12)
        assert auc(scores, labels, weights[number]) == float(found[number])


def test_many_classes_take_no_longer_than_few_sorts() -> None:
    labels = torch.eye(50)[torch.arange(500) % 50]
    scores = torch.rand(500, 50, generator=torch.Generator().manual_seed(0))
    start = time.process_time()
    score = UtilityAUC()(UtilityEvidence([scores], labels, None, tuple(map(str, range(50))), 0))
    assert len(score.parts) == 50
    assert time.process_time() - start < 5  # ten thousand calls of scikit-learn take more than 10 s


@pytest.mark.parametrize(("score", "label"), [(torch.nan, 1.0), (torch.inf, 0.0), (0.5, 0.5)])
def test_numbers_that_cannot_be_ranked_are_refused(score: float, label: float) -> None:
    with pytest.raises(ValueError, match="labels that are 1, 0 or NaN, and finite scores"):
        auc(torch.tensor([0.1, 0.2, score]), torch.tensor([1.0, 0.0, label]))
