from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import t as student

from bench.evidence import TransferEvidence, UtilityEvidence
from bench.types import NotApplicable
from metrics.transfer import TransferAccuracy, TransferAUC, accuracy


def predictions(scores: list[list[float]], labels: list[list[float]], keys: int = 1) -> UtilityEvidence:
    names = tuple("abc"[: len(labels[0])])
    return UtilityEvidence([torch.tensor(scores)] * keys, torch.tensor(labels), None, names, 3)


def classes(noise: float, n: int = 300) -> UtilityEvidence:
    """Scores of three classes, half of the rows in the first, under noise; every person has three rows."""
    random = torch.Generator().manual_seed(4)
    truth = torch.arange(n) % 4 % 3
    labels = torch.nn.functional.one_hot(truth, 3).float()
    scores = [labels + noise * torch.randn(n, 3, generator=random) for _ in range(2)]
    return UtilityEvidence(scores, labels, torch.arange(n) // 3, ("a", "b", "c"), 7)


def test_accuracy_is_the_share_of_rows_whose_true_class_scores_highest() -> None:
    scores = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    score = accuracy(predictions(scores, [[1, 0], [0, 1], [0, 1], [1, 0]]))
    assert (score.value, score.n) == (0.75, 4)


def test_classes_that_tie_share_the_row() -> None:
    tied = accuracy(predictions([[0.5, 0.5, 0.0], [0.1, 0.1, 0.1], [0.5, 0.5, 0.9]], [[1, 0, 0], [0, 1, 0], [1, 0, 0]]))
    assert tied.value == pytest.approx((1 / 2 + 1 / 3 + 0) / 3)


def test_rows_without_a_label_do_not_count() -> None:
    nan = float("nan")
    score = accuracy(predictions([[0.9, 0.1], [0.9, 0.1]], [[1, 0], [nan, nan]]))
    assert (score.value, score.n) == (1.0, 1)


def test_chance_says_the_most_frequent_class_of_all() -> None:
    constant = predictions([[1, 0, 0]] * 4, [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    score = accuracy(constant)
    assert score.value == score.null == 0.5


def test_the_interval_of_accuracy_holds_the_figure_and_is_as_wide_as_people_vary() -> None:
    found = classes(0.8)
    score = accuracy(found)
    assert score.low is not None
    assert score.high is not None
    assert score.low < score.value < score.high
    hits = torch.stack([scores.argmax(dim=1) == found.labels.argmax(dim=1) for scores in found.scores]).double()
    people = hits.reshape(2, 100, 3).mean(dim=2)
    both, apart = people.mean(dim=0).var() / 100, (people - people.mean(dim=0)).var(dim=1).sum() / 100
    keys = max(0.0, float(people.mean(dim=1).var() - apart) / 2)
    # The logarithm of the odds, 99 degrees of freedom for people and 1 for two keys.
    slope = 1 / (score.value * (1 - score.value))
    expected = slope * math.sqrt(student.ppf(0.975, 99) ** 2 * both + student.ppf(0.975, 1) ** 2 * keys)
    logits = [math.log(bound / (1 - bound)) for bound in (score.low, score.high)]
    # A deviation of 200 draws has a relative error of 5 %.
    assert (logits[1] - logits[0]) / 2 == pytest.approx(float(expected), rel=0.15)


@pytest.mark.parametrize(("right", "low", "high"), [(1.0, 0.6915, 1.0), (0.0, 0.0, 0.3085)])
def test_accuracy_of_ten_people_is_not_certain_where_all_or_none_are_right(
    right: float, low: float, high: float
) -> None:
    score = accuracy(predictions([[right, 1 - right]] * 10, [[1, 0]] * 10, keys=3))
    assert (score.low, score.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@pytest.mark.parametrize("labels", [[[1.0], [0.0]], [[1.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]], [[0.7, 0.3]]])
def test_findings_that_may_come_together_have_no_accuracy(labels: list[list[float]]) -> None:
    with pytest.raises(NotApplicable, match="exclusive classes"):
        accuracy(predictions(labels, labels))


def test_rows_that_nobody_labelled_have_no_accuracy() -> None:
    nan = float("nan")
    with pytest.raises(NotApplicable, match="there is none"):
        accuracy(predictions([[1.0, 0.0]], [[nan, nan]]))


@pytest.mark.parametrize("metric", [TransferAUC(), TransferAccuracy()])
def test_the_figure_is_that_of_original_rows_after_training_on_released_ones(
    metric: TransferAUC | TransferAccuracy,
) -> None:
    routes = {"o/o": classes(0.1), "p/o": classes(1.0)}
    score = metric(TransferEvidence(routes))
    assert set(score.parts) == set(routes)
    assert score.value == score.parts["p/o"].value < score.parts["o/o"].value


def test_a_release_of_another_shape_is_judged_on_released_rows() -> None:
    score = TransferAccuracy()(TransferEvidence({"o/o": classes(0.1), "p/p": classes(0.5)}))
    assert score.value == score.parts["p/p"].value < score.parts["o/o"].value
    assert "p/p" in score.note


@pytest.mark.parametrize("metric", [TransferAUC(), TransferAccuracy()])
def test_a_release_that_nothing_was_trained_on_does_not_transfer(metric: TransferAUC | TransferAccuracy) -> None:
    with pytest.raises(NotApplicable, match="trained on the release"):
        metric(TransferEvidence({"o/o": classes(0.1)}))
