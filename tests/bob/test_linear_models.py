"""The penalised models of a path are those of scikit-learn, whatever the labels lack.

What a linear probe learns, when it stops, and what it does not look at.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from bench.bob import linear_models as linear_probe
from bench.bob.linear_models import BATCH, PATIENCE, Rows, logistic_path, train_probe
from bench.statistics.classification_scores import auc

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


@pytest.fixture(autouse=True)
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as these sets need: they are told apart after a few steps."""
    monkeypatch.setattr(linear_probe, "EPOCHS", 100)
    monkeypatch.setattr(linear_probe, "STEPS", 1)


def draw(n: int, seed: int, gap: float = 3.0, *, classes: int = 2) -> Rows:
    """Vectors (n, 6) whose first columns tell one class each from the others by `gap` deviations."""
    random = torch.Generator().manual_seed(seed)
    number = torch.randint(classes, (n,), generator=random)
    labels = torch.nn.functional.one_hot(number, classes).float()
    vectors = torch.randn(n, 6, generator=random)
    vectors[:, :classes] += gap * labels
    return vectors, labels


def chance(positive: int, negative: int) -> float:
    """3.3 deviations (one in a thousand) of the AUC of scores that know nothing."""
    return 3.3 * ((positive + negative + 1) / (12 * positive * negative)) ** 0.5


@pytest.mark.parametrize("exclusive", [True, False])
def test_separable_classes_are_told_apart(exclusive: bool) -> None:
    # Two normals 3 sqrt(2) deviations apart along the best line: the AUC is Phi(3) = .9987.
    probe = train_probe(draw(400, 1), draw(200, 2), exclusive=exclusive, seed=0)
    vectors, labels = draw(500, 3)
    assert auc(probe.predict(vectors)[:, 0], labels[:, 0]) > 0.99


def test_labels_that_say_nothing_teach_nothing() -> None:
    vectors, labels = draw(400, 1)
    test, truth = draw(500, 3)
    shuffled = labels[torch.randperm(400, generator=torch.Generator().manual_seed(9))]
    dev = draw(200, 2)
    vectors[:, :2] = torch.randn(400, 2, generator=torch.Generator().manual_seed(8))
    probe = train_probe((vectors, shuffled), dev, exclusive=True, seed=0)
    test[:, :2] = torch.randn(500, 2, generator=torch.Generator().manual_seed(7))
    positive = int(truth[:, 0].sum())
    assert abs((auc(probe.predict(test)[:, 0], truth[:, 0]) or 0.0) - 0.5) < chance(positive, 500 - positive)


def test_noise_lowers_the_auc_step_by_step() -> None:
    probe = train_probe(draw(400, 1), draw(200, 2), exclusive=True, seed=0)
    vectors, labels = draw(800, 3)
    noise = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(4))
    found = [auc(probe.predict(vectors + sigma * noise)[:, 0], labels[:, 0]) or 0.0 for sigma in (0.0, 1.0, 2.0, 3.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] - found[3] > 0.1  # Phi(3) against Phi(3 / sqrt(10)) = .83


def test_training_stops_once_validation_has_not_improved_for_long_enough() -> None:
    random = torch.Generator().manual_seed(0)
    dev = torch.randn(60, 6, generator=random), draw(60, 5)[1]  # labels that no vector explains
    probe = train_probe(draw(300, 1), dev, exclusive=True, seed=0)
    assert probe.epochs == probe.best + PATIENCE < 100


def test_few_rows_are_gone_through_more_often_than_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_probe, "PATIENCE", 9)
    monkeypatch.setattr(linear_probe, "EPOCHS", 3)
    monkeypatch.setattr(linear_probe, "STEPS", 8)
    for n, epochs in ((BATCH, 8), (2 * BATCH, 4), (4 * BATCH, 3)):
        assert train_probe(draw(n, 1), draw(50, 2), exclusive=True, seed=0).epochs == epochs


def test_the_best_epoch_is_kept() -> None:
    random = torch.Generator().manual_seed(0)
    dev = torch.randn(60, 6, generator=random), draw(60, 5)[1]
    probe = train_probe(draw(300, 1), dev, exclusive=True, seed=0)
    logs = probe.predict(dev[0]).log()
    assert float(-(dev[1] * logs).sum(dim=1).mean()) == pytest.approx(probe.loss, rel=1e-9)


def test_unknown_labels_and_constant_columns_count_for_nothing() -> None:
    (vectors, labels), dev = draw(300, 1), draw(100, 2)
    wide = torch.cat((vectors, torch.full((300, 1), 0.1)), dim=1), labels
    wide_dev = torch.cat((dev[0], torch.full((100, 1), 0.1)), dim=1), dev[1]
    unknown = torch.cat((wide[0], wide[0])), torch.cat((labels, torch.full((300, 2), torch.nan)))
    alone = train_probe((vectors, labels), dev, exclusive=False, seed=0).predict(dev[0])
    assert torch.allclose(train_probe(wide, wide_dev, exclusive=False, seed=0).predict(wide_dev[0]), alone)
    assert torch.allclose(train_probe(unknown, wide_dev, exclusive=False, seed=0).predict(wide_dev[0]), alone)
    one = labels.clone()
    one[:, 1] = torch.nan  # a finding without a known label is not learned
    half = train_probe((vectors, one), dev, exclusive=False, seed=0).predict(dev[0])
    assert bool((half[:, 1] == 0.5).all())
    assert not bool((half[:, 0] == 0.5).any())


def test_a_generator_is_drawn_from_afresh_in_every_epoch_and_stored_rows_only_give_the_scale() -> None:
    asked = []

    def fresh(epoch: int) -> Rows:
        asked.append(epoch)
        return draw(300, 100 + epoch)

    nothing = draw(300, 1)[0], torch.full((300, 2), 0.5)  # soft labels that prefer no class
    probe = train_probe(nothing, draw(200, 2), exclusive=True, seed=0, fresh=fresh)
    assert asked == list(range(1, probe.epochs + 1))
    vectors, labels = draw(500, 3)
    assert (auc(probe.predict(vectors)[:, 0], labels[:, 0]) or 0.0) > 0.99


def test_validation_is_judged_in_the_real_classes() -> None:
    vectors, labels = draw(400, 1)
    dev, test = draw(200, 2), draw(500, 3)
    plain = train_probe((vectors, labels), dev, exclusive=True, seed=0)
    coded = train_probe((vectors, labels.flip(1)), dev, exclusive=True, seed=0, decode=lambda scores: scores.flip(1))
    assert coded.loss == pytest.approx(plain.loss, rel=1e-5)
    assert torch.allclose(coded.predict(test[0]).flip(1), plain.predict(test[0]), atol=1e-5)


def test_the_same_seed_gives_the_same_probe_and_another_orders_rows_otherwise() -> None:
    rows, dev = draw(2 * BATCH, 1), draw(100, 2)
    first, second, other = (train_probe(rows, dev, exclusive=True, seed=seed).predict(dev[0]) for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_rows_without_any_label_and_rows_that_are_not_finite_are_errors() -> None:
    (vectors, labels), dev = draw(50, 1), draw(50, 2)
    with pytest.raises(ValueError, match="released rows with a label"):
        train_probe((vectors, labels * torch.nan), dev, exclusive=True, seed=0)
    with pytest.raises(ValueError, match="validation rows with a label"):
        train_probe((vectors, labels), (dev[0], dev[1] * torch.nan), exclusive=True, seed=0)
    with pytest.raises(ValueError, match="not finite"):
        train_probe((vectors, labels), (dev[0] * torch.inf, dev[1]), exclusive=True, seed=0)
