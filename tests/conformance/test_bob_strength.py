"""Bob is not beaten by a one-line model; where he would be, `bench check` says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from bench.bob.recipes import BobPlan
from bench.conformance import bob_strength as strength
from bench.conformance import conform
from bench.conformance.bob_strength import best_simple_model, lead
from bench.types import NotApplicable, Release

CHECK = "Bob keeps up with simple models"
CPU = torch.device("cpu")


def test_a_bob_who_knows_a_barely_trained_network_alone_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    weak = BobPlan(("resnet18",), epochs=1, width=8)
    monkeypatch.setattr(strength, "plan_of", lambda preset: weak)
    (found,) = (result for result in conform("methods", "identity", CPU) if result.check == CHECK)
    assert found.status == "noted"
    assert "Bob may be too weak here: test AUC 0." in found.detail
    assert "by logistic regression on" in found.detail


def test_the_best_simple_model_is_scikit_learns_on_the_same_rows() -> None:
    parts = [strength.shown("table", rows, seed) for seed, rows in enumerate((80, 60, 90))]
    release = Release(parts[0].samples, parts[0].labels, None)
    rows = [part.samples for part in parts]
    labels = [part.labels for part in parts]
    assert labels[0] is not None
    assert labels[1] is not None
    assert labels[2] is not None
    found = best_simple_model(release, rows[1], labels[1], rows[2], decode=lambda scores: scores)
    mean, std = rows[0].double().mean(dim=0), rows[0].double().std(dim=0, correction=0)
    seen = [((part.double() - mean) / std).numpy() for part in rows]
    dev = []
    for c in (2e-4, 2e-3, 2e-2, 2e-1, 2.0):  # sixteen times the penalties, over eight columns
        models = [LogisticRegression(C=c, max_iter=300).fit(seen[0], labels[0][:, k].numpy()) for k in range(2)]
        scores = [model.predict_proba(seen[1])[:, 1] for model in models]
        dev.append(sum(roc_auc_score(labels[1][:, k].numpy(), scores[k]) for k in range(2)) / 2)
    assert found.dev_auc == pytest.approx(max(dev), abs=1e-3)


def test_a_lead_counts_only_beyond_noise() -> None:
    random = torch.Generator().manual_seed(0)
    labels = (torch.arange(200) % 2).float()[:, None]
    good, other = (labels + 2 * torch.randn(200, 1, generator=random) for _ in range(2))
    noise = torch.randn(200, 1, generator=random)
    assert not lead([good], [good], labels, None).too_weak
    assert lead([good], [good], labels, None).difference == 0
    assert not lead([other], [good], labels, None).too_weak
    assert lead([labels], [noise], labels, torch.arange(200) // 2).too_weak


def test_a_release_without_labels_teaches_nothing() -> None:
    part = strength.shown("table", 40, 0)
    assert part.labels is not None
    release = replace(Release(part.samples, part.labels, None), labels=None)
    with pytest.raises(NotApplicable, match="no labels"):
        best_simple_model(release, part.samples, part.labels, part.samples, decode=lambda scores: scores)
