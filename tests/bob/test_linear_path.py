"""The penalised models of a path are those of scikit-learn, whatever the labels lack."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from bench.bob.linear_models import logistic_path

NAN = float("nan")
STRENGTHS = (10.0, 0.1, 0.001)


def rows(m: int, d: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    samples = torch.randn(m, d, generator=random) * torch.linspace(3, 0.1, d) + 5
    labels = (samples[:, :2] + torch.randn(m, 2, generator=random) > 5).float()
    return samples, labels


def scaled(samples: Tensor) -> tuple[np.ndarray, float]:
    centred = (samples - samples.mean(dim=0)).double()
    scale = float(centred.square().mean().sqrt())
    return (centred / scale).numpy(), scale


@pytest.mark.parametrize(("m", "d"), [(60, 200), (200, 20)])
def test_few_rows_and_many_give_what_scikit_learn_gives(m: int, d: int) -> None:
    samples, labels = rows(m, d)
    seen, scale = scaled(samples)
    for model, strength in zip(
        logistic_path(samples, labels, exclusive=False, strengths=STRENGTHS), STRENGTHS, strict=True
    ):
        for k in range(2):
            oracle = LogisticRegression(C=1 / (strength * d), max_iter=5000, tol=1e-8).fit(seen, labels[:, k].numpy())
            logits = torch.from_numpy(oracle.decision_function(seen)).float()
            assert torch.allclose(samples @ model.weights[:, k] + model.bias[k], logits, atol=0.05, rtol=0.02)
        assert model.strength == strength
    assert scale > 0


def test_columns_as_they_are_give_the_same_where_principal_parts_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    samples, labels = rows(80, 40)
    before = logistic_path(samples, labels, exclusive=False, strengths=STRENGTHS)
    monkeypatch.setattr("bench.bob.linear_models.FEW", 10)
    for one, other in zip(before, logistic_path(samples, labels, exclusive=False, strengths=STRENGTHS), strict=True):
        assert torch.allclose(samples @ one.weights + one.bias, samples @ other.weights + other.bias, atol=0.2)


def test_unknown_labels_count_for_nothing() -> None:
    samples, labels = rows(90, 30)
    holed = labels.clone()
    holed[60:, 0] = NAN
    holed[80:] = NAN
    whole = logistic_path(samples[:80], holed[:80], exclusive=False)
    for one, other in zip(whole, logistic_path(samples, holed, exclusive=False), strict=True):
        assert torch.equal(one.weights, other.weights)
    with pytest.raises(ValueError, match="every label of every row is NaN"):
        logistic_path(samples, torch.full_like(labels, NAN), exclusive=False)


def test_exclusive_classes_are_a_softmax() -> None:
    random = torch.Generator().manual_seed(1)
    classes = torch.arange(120) % 3
    samples = torch.randn(120, 6, generator=random)
    samples[torch.arange(120), classes] += 1
    seen, _ = scaled(samples)
    labels = torch.nn.functional.one_hot(classes, 3).float()
    (model,) = logistic_path(samples, labels, exclusive=True, strengths=(0.1,))
    oracle = LogisticRegression(C=1 / 0.6, max_iter=5000, tol=1e-8).fit(seen, classes.numpy())
    found = (samples @ model.weights + model.bias).softmax(dim=1)
    assert torch.allclose(found, torch.from_numpy(oracle.predict_proba(seen)).float(), atol=0.01)


def test_a_soft_label_is_a_row_that_counts_for_both_sides() -> None:
    samples, labels = rows(50, 10)
    soft = 0.2 + 0.6 * labels
    doubled = torch.cat((torch.ones_like(soft), torch.zeros_like(soft)))
    weights = torch.cat((soft[:, 0], 1 - soft[:, 0])).numpy()
    seen, _ = scaled(samples)
    (model,) = logistic_path(samples, soft[:, :1], exclusive=False, strengths=(0.1,))
    oracle = LogisticRegression(C=1.0, max_iter=5000, tol=1e-8)
    oracle.fit(np.concatenate((seen, seen)), doubled[:, 0].numpy(), weights)
    logits = torch.from_numpy(oracle.decision_function(seen)).float()
    assert torch.allclose(samples @ model.weights[:, 0] + model.bias[0], logits, atol=0.02)
