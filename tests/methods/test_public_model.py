"""A classifier of public rows learns them, and nothing private enters it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.randomness import Secret
from bench.types import Dataset, NotApplicable
from methods.public_model import PublicModel

pytestmark = pytest.mark.usefixtures("one_thread")


def data(n: int = 160, seed: int = 0, *, table: bool = False, exclusive: bool = False) -> Dataset:
    source = torch.Generator().manual_seed(seed)
    samples = torch.randn((n, 6) if table else (n, 1, 8, 8), generator=source)
    yes = torch.arange(n) % 2 == 1
    samples[yes, ..., samples.shape[-1] // 2 :] += 1.5
    labels = torch.stack((~yes, yes), dim=1).float() if exclusive else yes.float()[:, None]
    return Dataset("made", samples, labels, None, ("no", "yes") if exclusive else ("yes",), exclusive, True)


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_it_predicts_rows_that_nobody_released(table: bool, exclusive: bool) -> None:
    public, private = (data(seed=seed, table=table, exclusive=exclusive) for seed in (0, 1))
    epochs = 20 if table else 6
    scheme = PublicModel(width=8, epochs=epochs).fit(public, 0)
    again = PublicModel(width=8, epochs=epochs).load(scheme.state())
    found = [each.sample_key(Secret.of_seed(0)).classifier(private) for each in (scheme, again)]
    scores, same = (classify(private.samples) for classify in found if classify is not None)
    assert scores.equal(same)
    assert scores.shape == (len(private), 2 if exclusive else 1)
    right = (scores[:, -1] > (scores[:, 0] if exclusive else 0)) == (torch.arange(len(private)) % 2 == 1)
    assert right.float().mean() > 0.9


def test_neither_secret_nor_private_rows_matter() -> None:
    scheme, private = PublicModel(width=8, epochs=1).fit(data(), 0), data(40, 3)
    classifiers = [scheme.sample_key(Secret.of_seed(number)).classifier(rows)
                   for number, rows in ((0, private), (1, replace(private, labels=1 - private.labels)))]  # fmt: skip
    first, second = (classify(private.samples) for classify in classifiers if classify is not None)
    assert first.equal(second)


def test_it_does_not_apply_without_public_labels_of_two_kinds_or_to_other_findings() -> None:
    public = data(40)
    for labels in (None, torch.ones(40, 1)):
        with pytest.raises(NotApplicable, match="learns from public labels"):
            PublicModel().fit(replace(public, labels=labels), 0)
    key = PublicModel(width=8, epochs=1).fit(public, 0).sample_key(Secret.of_seed(0))
    with pytest.raises(NotApplicable, match="knows 1 findings"):
        key.classifier(data(40, exclusive=True))
    with pytest.raises(NotApplicable, match="nothing is released"):
        key.release(public)
