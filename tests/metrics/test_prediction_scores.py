"""Figures of Bob's predictions beside AUC, against scikit-learn and slow twins."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score, roc_curve
from torch import Tensor

from bench.evidence import UtilityEvidence
from bench.types import Attributes, NotApplicable
from metrics.prediction_scores import (
    AUPRC,
    Brier,
    CalibrationError,
    Sensitivity,
    average_precision,
    calibration_error,
    found_at,
    squared_error,
)
from metrics.utility_auc import UtilityByGroup

N = 200
ALL = [AUPRC(), Sensitivity(), Brier(), CalibrationError()]


def evidence(quality: float = 0.2, keys: int = 3) -> UtilityEvidence:
    random = torch.Generator().manual_seed(0)
    labels = (torch.rand(N, 2, generator=random) < 0.3).float()
    noise = [torch.rand(N, 2, generator=random) for _ in range(keys)]
    scores = [((1 - quality) * made + quality * labels).mul(20).round() / 20 for made in noise]
    labels[:15, 1] = torch.nan
    return UtilityEvidence(scores, labels, torch.arange(N) // 2, ("a", "b"), 3)


def drawn(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Tied scores, labels and weights, some of them 0."""
    random = torch.Generator().manual_seed(seed)
    labels = (torch.rand(60, generator=random) < 0.4).float()
    scores = (torch.rand(60, generator=random) + 0.3 * labels).mul(9).round().div(12)
    return scores.double(), labels, torch.randint(4, (5, 60), generator=random)


@pytest.mark.parametrize("seed", range(4))
def test_figures_agree_with_scikit_learn_under_weights(seed: int) -> None:
    scores, labels, weights = drawn(seed)
    precision, error = average_precision(scores, labels, weights), squared_error(scores, labels, weights)
    found = found_at(scores, labels, weights)
    for row, times in enumerate(weights):
        expected = average_precision_score(labels.numpy(), scores.numpy(), sample_weight=times.numpy())
        assert float(precision[row]) == pytest.approx(expected)
        assert float(error[row]) == pytest.approx(brier_score_loss(labels, scores, sample_weight=times))
        alarms, hits, _ = roc_curve(labels, scores, sample_weight=times, drop_intermediate=False)
        assert float(found[row]) == pytest.approx(max(hits[alarms <= 0.1 + 1e-12]))


def test_calibration_error_is_that_of_its_definition() -> None:
    scores, labels, weights = drawn(9)
    for times, found in zip(weights, calibration_error(scores, labels, weights), strict=True):
        total = 0.0
        for number in range(10):
            inside = [
                i for i in range(60) if number <= float(scores[i]) * 10 < number + 1 or (number == 9 and scores[i] == 1)
            ]
            rows = sum(int(times[i]) for i in inside)
            if rows:
                mean = sum(float(scores[i]) * int(times[i]) for i in inside) / rows
                share = sum(float(labels[i]) * int(times[i]) for i in inside) / rows
                total += rows / int(times.sum()) * abs(mean - share)
        assert float(found) == pytest.approx(total)


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_a_figure_is_a_mean_over_findings_and_keys_within_its_interval(metric: AUPRC) -> None:
    score = metric(evidence())
    assert set(score.parts) == {"a", "b"}
    assert score.value == pytest.approx(sum(part.value for part in score.parts.values()) / 2)
    single = [metric(replace(evidence(), scores=[made])).value for made in evidence().scores]
    assert score.value == pytest.approx(sum(single) / 3)
    assert score.low is not None
    assert score.high is not None
    assert score.low < score.value < score.high
    with pytest.raises(NotApplicable, match="positive and negative test rows"):
        metric(replace(evidence(), labels=torch.ones(N, 2)))


def test_better_predictions_have_better_figures_and_chance_is_what_no_image_gives() -> None:
    weak, strong = evidence(0.0), evidence(0.9)
    for metric in (AUPRC(), Sensitivity()):
        chance = metric(weak).null
        assert chance is not None
        assert metric(strong).value > 0.95
        assert abs(metric(weak).value - chance) < 0.1
    assert Brier()(strong).value < Brier()(weak).value
    prevalence = float(weak.labels[:, 0].nanmean())
    assert Brier()(weak).parts["a"].null == pytest.approx(prevalence * (1 - prevalence))


@pytest.mark.parametrize("metric", [Brier(), CalibrationError()])
def test_scores_that_are_no_probabilities_have_no_calibration(metric: Brier) -> None:
    logits = [5 * scores for scores in evidence().scores]
    with pytest.raises(NotApplicable, match="no probabilities"):
        metric(replace(evidence(), scores=logits))


def test_the_worst_group_is_the_headline_and_small_groups_are_left_out() -> None:
    codes = torch.zeros(N, 2, dtype=torch.int64)
    codes[100:, 0] = 1
    codes[:, 1] = torch.where(torch.arange(N) < 8, 0, -1)
    found = evidence(0.9)
    scores = [made.clone() for made in found.scores]
    for made in scores:
        made[100:] = torch.rand(100, 2, generator=torch.Generator().manual_seed(1))
    groups = Attributes(("sex", "site"), (("f", "m"), ("far",)), codes)
    score = UtilityByGroup()(replace(found, scores=scores, attributes=groups))
    assert set(score.parts) == {"sex: f", "sex: m"}
    assert score.value == score.parts["sex: m"].value
    assert score.parts["sex: f"].value > 0.95
    own = found.labels[100:, 0]
    aucs = [roc_auc_score(own, made[100:, 0]) for made in scores]
    only = UtilityByGroup()(
        replace(found, scores=[made[:, :1] for made in scores], labels=found.labels[:, :1], findings=("a",),
                attributes=groups)
    )  # fmt: skip
    assert only.parts["sex: m"].value == pytest.approx(sum(aucs) / 3)
    with pytest.raises(NotApplicable, match="does not say which groups"):
        UtilityByGroup()(found)
    with pytest.raises(NotApplicable, match="no group has a finding"):
        UtilityByGroup()(replace(found, attributes=Attributes(("site",), (("far",),), codes[:, 1:])))
