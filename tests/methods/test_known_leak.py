"""What a known leak keeps, it keeps; what it does not, is gone; and the best attack on it attains what is stated."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from scipy.stats import chisquare, kstest

from bench.leak_search.search import FOLDS, shown
from bench.randomness import Secret
from bench.types import Dataset, Release
from methods.known_leak import Kept, KnownLeak

N = 60


def images(seed: int = 0, n: int = N) -> Dataset:
    samples = torch.rand(n, 1, 16, 16, generator=torch.Generator().manual_seed(seed))
    return Dataset("made", samples, None, None, (), False, True)


def released(keeps: Kept, rows: Dataset, seed: int = 0, **more: float | str) -> Release:
    method = KnownLeak(keeps=keeps, **more)  # type: ignore[arg-type]
    return method.fit(images(9), 0).sample_key(Secret.of_seed(seed)).release(rows)


def test_a_scalar_survives_and_nothing_else() -> None:
    rows = images()
    made = released("scalar", rows).samples.flatten(1)
    assert torch.allclose(made[:, 0].double(), rows.samples.flatten(1).double().mean(dim=1), atol=1e-7)
    assert torch.equal(made, made[:, :1].expand_as(made))


def test_a_length_survives_in_a_direction_that_says_nothing() -> None:
    rows = images(n=400)
    made, raw = (samples.flatten(1).double() for samples in (released("length", rows).samples, rows.samples))
    assert torch.allclose(made.norm(dim=1), raw.norm(dim=1), rtol=1e-6)
    cosines = (made * raw).sum(dim=1) / raw.norm(dim=1).square() * 256**0.5
    assert kstest(cosines.numpy(), "norm").pvalue > 1e-4  # a coordinate of a point on a sphere in 256 dimensions


def test_groups_hold_as_many_rows_as_stated_all_alike() -> None:
    rows = images(n=64)
    made = released("group", rows).samples
    _, group, sizes = torch.unique(made.flatten(1), dim=0, return_inverse=True, return_counts=True)
    assert sorted(sizes.tolist()) == [10] * 5 + [14]
    for number in range(6):
        assert torch.allclose(made[group == number][0], rows.samples[group == number].mean(dim=0), atol=1e-6)
    assert released("group", images(n=4)).samples.flatten(1).unique(dim=0).shape[0] == 1


def test_a_pad_leaves_every_level_as_likely() -> None:
    constant = Dataset("made", torch.full((N, 1, 16, 16), 0.3), None, None, (), False, True)
    levels = (released("nothing", constant).samples * 255).round().long()
    assert chisquare(torch.bincount(levels.flatten(), minlength=256).numpy()).pvalue > 1e-4


def test_the_noise_of_a_scalar_is_that_of_its_mechanism() -> None:
    rows, method = images(n=2000), KnownLeak(keeps="noisy-scalar", scale=0.05)
    scheme = method.fit(images(9), 0)
    mechanism = scheme.mechanism()
    assert mechanism is not None
    release = scheme.sample_key(Secret.of_seed(1)).release(rows)
    noise = mechanism.noise(mechanism.locate(rows), mechanism.observe(release))[:, 0]
    assert kstest(noise.numpy(), "laplace").pvalue > 1e-4
    assert KnownLeak(keeps="scalar").fit(images(9), 0).mechanism() is None


@pytest.mark.parametrize(
    ("keeps", "expected"),
    [("scalar", 1.0), ("length", 1.0), ("group", 5.5), ("nothing", (60**2 + 1) / 61), ("noisy-scalar", None)],
)
def test_the_best_guesswork_is_known(keeps: Kept, expected: float | None) -> None:
    assert KnownLeak(keeps=keeps).bayes_guesswork(N) == expected


def test_no_labels_are_released_and_a_key_does_the_same_again() -> None:
    rows = images()
    for keeps in ("scalar", "noisy-scalar", "length", "group", "pixels", "nothing"):
        one, two = (released(cast(Kept, keeps), rows, seed=3) for _ in range(2))
        assert one.labels is None
        assert torch.equal(one.samples, two.samples)


def test_a_groups_mean_is_declared_to_show_all_its_members() -> None:
    """Each row is linked to its own mean; as under k-Same, equal rows show whom any of them is declared to show."""
    rows = images(n=40)
    made = released("group", rows)
    assert made.links is not None
    part = torch.arange(40) % FOLDS
    told = shown(made.links, part, made.samples)
    _, group = torch.unique(made.samples.flatten(1), dim=0, return_inverse=True)
    for number in range(4):
        folds = torch.unique(part[group == number]).tolist()
        assert [told[row].nonzero()[:, 0].tolist() for row in (group == number).nonzero()[:, 0]] == [folds] * 10


def test_pixels_stay_at_the_same_places_of_all_rows_and_of_all_keys_if_the_places_are_public() -> None:
    rows = images(n=30)
    kept = {
        places: [
            (released("pixels", rows, seed, pixels=5, places=places).samples == rows.samples).flatten(1)
            for seed in (3, 4)
        ]
        for places in ("public", "secret")
    }
    for one in (each for both in kept.values() for each in both):
        assert one.sum(dim=1).eq(5).all()
        assert (one == one[0]).all()
    assert torch.equal(*kept["public"])
    assert not torch.equal(*kept["secret"])
