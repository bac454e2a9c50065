from dataclasses import replace

import pytest
import torch
from made.datasets import uniform, unlabelled

from bench.randomness import Secret
from bench.types import Dataset, NotApplicable
from methods.distilled import Distilled

pytestmark = pytest.mark.usefixtures("one_thread")

KEPT = {"steps": 1, "learning_rate": 1e-9}
"""A descent that moves nothing."""


def quick(**choices):
    return Distilled(**({"per_class": 3, "width": 8, "steps": 3, "batch": 16} | choices))


def released(method, private, seed=1):
    return method.fit(private, 0).sample_key(Secret.of_seed(seed)).release(private)


def halves(n=120, *, exclusive=True):
    """Images that are bright above if they have the first label, and below otherwise."""
    first = torch.arange(n) % 3 == 0
    samples = 0.2 * uniform(n, 1, 8, 8).samples
    samples[first, :, :4] += 0.7
    samples[~first, :, 4:] += 0.7
    labels = torch.stack((first, ~first), dim=1).float() if exclusive else first.float()[:, None]
    return Dataset("halves", samples, labels, None, ("above", "below")[: labels.shape[1]], exclusive, True)


@pytest.mark.parametrize("exclusive", [True, False])
def test_noise_becomes_what_the_rows_of_a_class_have_in_common(exclusive):
    release = released(quick(start="noise", steps=120), halves(exclusive=exclusive))
    assert release.links is None
    assert release.samples.shape == (6, 1, 8, 8)
    assert 0 <= float(release.samples.min()) <= float(release.samples.max()) <= 1
    first = release.labels[:, 0] == 1
    assert int(first.sum()) == 3
    above = release.samples[:, :, :4].mean(dim=(1, 2, 3)) - release.samples[:, :, 4:].mean(dim=(1, 2, 3))
    assert float(above[first].min()) > 0.2
    assert float(above[~first].max()) < -0.2
    before = released(quick(start="noise", **KEPT), halves(exclusive=exclusive)).samples
    above = before[:, :, :4].mean(dim=(1, 2, 3)) - before[:, :, 4:].mean(dim=(1, 2, 3))
    assert float(above.abs().max()) < 0.2  # of 32 clamped normal pixels a side: a deviation of .1


@pytest.mark.parametrize("exclusive", [True, False])
def test_released_images_start_as_rows_of_their_labels(exclusive):
    private = halves(exclusive=exclusive)
    release = released(quick(**KEPT), private)
    apart = torch.cdist(release.samples.flatten(1), private.samples.flatten(1))
    assert float(apart.amin(dim=1).max()) < 0.02  # cdist rounds
    assert torch.equal(release.labels, private.labels[apart.argmin(dim=1)])
    assert len(torch.unique(apart.argmin(dim=1))) == 6


def test_a_descent_brings_the_released_rows_features_nearer_to_all_rows():
    private, method = halves(60), quick(start="noise", steps=60)
    network = method.network((1, 8, 8)).requires_grad_(False)
    apart = []
    for choices in (KEPT, {"steps": 60}):
        release = released(replace(method, **choices), private)
        means = [
            [network((rows - 0.5) / 0.25).mean(dim=0) for rows in (samples[labels[:, k] == 1] for k in range(2))]
            for samples, labels in ((private.samples, private.labels), (release.samples, release.labels))
        ]
        apart.append(float(sum((raw - own).square().sum() for raw, own in zip(*means, strict=True))))
    assert apart[1] < 0.5 * apart[0]


def test_each_answer_to_each_finding_has_its_rows_and_unknown_ones_stand_in_neither():
    labels = torch.tensor([[1.0, 0.0], [0.0, 1.0], [torch.nan, 1.0], [torch.nan, torch.nan], [0.0, torch.nan]])
    private = Dataset("made", uniform(5, 1, 8, 8).samples, labels, None, ("a", "b"), False, True)
    release = released(quick(per_class=9, **KEPT), private)
    assert len(release) == 4  # the row without a known label is in no group
    shown = torch.cdist(release.samples.flatten(1), private.samples.flatten(1)).argmin(dim=1)
    assert sorted(shown.tolist()) == [0, 1, 2, 4]
    assert torch.equal(release.labels.nan_to_num(-1), labels[shown].nan_to_num(-1))
    with pytest.raises(NotApplicable, match="no row of made has a known label"):
        released(quick(), replace(private, labels=torch.full_like(labels, torch.nan)))


def test_rows_without_labels_are_one_class():
    release = released(quick(), unlabelled(uniform(12, 3, 9, 7).samples))
    assert release.samples.shape == (3, 3, 9, 7)
    assert release.labels is None


def test_a_secret_gives_the_release_again_and_another_secret_another_one():
    private = halves()
    first, again, other = (released(quick(), private, seed).samples for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_tables_and_rows_that_are_not_finite_are_refused():
    with pytest.raises(NotApplicable, match="is a table"):
        quick().fit(uniform(5, 4), 0)
    private = halves(6)
    private.samples[:, 0, 0, 0] = torch.inf
    with pytest.raises(ValueError, match="rows must be finite: 4 of 4 rows"):
        released(quick(per_class=2), private)
