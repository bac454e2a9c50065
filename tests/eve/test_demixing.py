from dataclasses import replace

import pytest
import torch
from made.datasets import unlabelled
from made.many_mixtures import ManyMixtures

from bench.eve import demixing
from bench.eve.demixing import Mixtures, learn, signs
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Release
from methods.identity import Identity
from methods.k_same import KSame

N = 24


def people(seed, n=N):
    """Smooth images of 16 pixels a side, brighter at the top."""
    rough = torch.rand(n, 1, 6, 6, generator=generator(seed)) + torch.linspace(1, 0, 6)[:, None]
    return unlabelled(torch.nn.functional.interpolate(rough / 2, scale_factor=2.5, mode="bilinear"))


def released(epochs, seed, of, k=3):
    scheme = ManyMixtures(epochs, k).fit(people(0), 0)
    return scheme.sample_key(Secret.of_seed(seed)).release(of)


def played(epochs, ridge=1e-2):
    """Eve's lesson, the recovered images, and mean squared errors of them and of her people's mean."""
    own, owner = people(0), people(1)
    lesson = learn(own.samples, released(epochs, 1, own))
    release = released(epochs, 2, owner)
    found = lesson.undone(release.samples, ridge, 0)
    images = (found.images[found.named(release.links, N)] + lesson.centre).clamp(0, 1)
    truth = owner.samples.flatten(1)
    errors = [float((guess - truth).square().mean()) for guess in (images, own.samples.flatten(1).mean(dim=0))]
    return lesson, found, release, errors


def test_many_mixtures_of_each_image_give_the_images_without_candidates():
    lesson, found, release, (error, of_mean) = played(16)
    assert (lesson.mixed, lesson.rows_each) == (3, 16)
    assert found.share_found(release.links, N) > 0.9
    assert error < of_mean / 4
    assert found.left < 0.01


def test_few_mixtures_of_each_image_give_less():
    *_, (many, _) = played(16)
    *_, (few, _) = played(1)
    assert few > 4 * many


def test_of_noise_no_image_is_recovered():
    own, owner = people(0), people(1)
    lesson = learn(own.samples, released(8, 1, own))
    real = released(8, 2, owner)
    noise = torch.randn(real.samples.shape, generator=generator(5))
    found = lesson.undone(noise, 1e-2, 0)
    chance = found.share_found(real.links, N)
    assert chance < 0.4  # names are given by memberships alone, and random ones agree a little
    images = (found.images[found.named(real.links, N)] + lesson.centre).clamp(0, 1)
    truth = owner.samples.flatten(1)
    assert float((images - truth).square().mean()) > float((own.samples.flatten(1).mean(dim=0) - truth).square().mean())


def test_the_scale_of_mixtures_is_that_of_the_release():
    lesson = learn(people(0).samples, released(4, 1, people(0)))
    assert lesson.scale == pytest.approx(1 / float(people(0).samples.std()), rel=0.01)


def test_releases_without_overlapping_mixtures_teach_nothing():
    raw = people(0)
    assert learn(raw.samples, Identity().fit(raw, 0).sample_key(Secret.of_seed(0)).release(raw)) is None
    whole = KSame(k=2).fit(raw, 0).sample_key(Secret.of_seed(0)).release(raw)
    assert learn(raw.samples, whole) is None
    mixed = released(2, 1, raw)
    assert learn(raw.samples, replace(mixed, links=None, primary=None)) is None
    assert learn(raw.samples, replace(mixed, links=mixed.links[:-1], primary=mixed.primary[:-1])) is None
    assert learn(raw.samples, replace(mixed, samples=mixed.samples.flatten(1))) is None


def test_mixtures_of_two_tables_of_rows_are_no_images():
    flat = people(0).samples.flatten(1)
    rows = torch.arange(N)
    links = torch.cat((torch.stack((rows, rows), 1), torch.stack((rows.roll(1), rows), 1)))
    assert learn(flat, Release(flat, None, links)) is None


def test_signs_follow_the_likeness_of_people_s_numbers():
    rows = people(0).samples.flatten(1).double()
    rows = rows - rows.mean()
    flipped = torch.where(torch.rand(rows.shape[1], generator=generator(1)) < 0.5, -1.0, 1.0).double()
    assert float((signs(rows * flipped, rows) == flipped).double().mean()) > 0.97


def test_very_many_rows_are_not_taken_apart(monkeypatch):
    lesson = Mixtures(3, 1, torch.zeros(4), 1.0, torch.zeros(2, 4))
    assert not lesson.too_many(600)
    assert lesson.too_many(10_000)
    monkeypatch.setattr(demixing, "LARGEST", 100)
    assert lesson.too_many(600)
