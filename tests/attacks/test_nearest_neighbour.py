from dataclasses import replace

import pytest
import torch
from made.attack_games import play
from made.datasets import unlabelled
from made.toy_methods import Keyless

from attacks import nearest_neighbour
from attacks.nearest_neighbour import NearestNeighbour, mirrored, smaller_sides
from bench.backbones import packages
from bench.randomness import Secret
from bench.types import DataError, Dataset, NotApplicable, Release, View, paired
from methods.dp_simple import DPSimple
from methods.identity import Identity
from methods.noise import Noise


def images(n=40, side=16, seed=0):
    """Images of class 0 or 1 (left or right half brighter), each with a texture of its own."""
    source = torch.Generator().manual_seed(seed)
    samples = torch.rand(n, 1, side, side, generator=source) * 0.5
    labels = torch.arange(n).remainder(2).float()[:, None]
    samples[labels[:, 0] == 0, :, :, : side // 2] += 0.5
    samples[labels[:, 0] == 1, :, :, side // 2 :] += 0.5
    return Dataset("made", samples, labels, None, ("right",), False, True)


SMALL_FEATURES = NearestNeighbour(space="features", steps=15, width=8)


@pytest.mark.parametrize("attack", [NearestNeighbour(), SMALL_FEATURES])
def test_identity_is_fully_reidentified(attack):
    assert play(attack, Identity(), images(), public=images(seed=9)).top_1 == 1


@pytest.mark.parametrize("attack", [NearestNeighbour(), SMALL_FEATURES])
def test_noise_stays_at_chance(attack):
    # 400 rows, one right by chance: Poisson(1), above 8 once in a million.
    assert play(attack, Noise(), images(400), public=images(seed=9)).top_1 <= 8 / 400


def test_weak_noise_is_seen_through():
    assert play(NearestNeighbour(), DPSimple(scale=0.5), images(), public=images(seed=9)).top_1 == 1


class Turned(Keyless):
    """Releases white for black."""

    def release(self, private):
        return paired(1 - private.samples, None)


def test_a_negative_is_turned_round():
    assert play(NearestNeighbour(), Turned(), images()).top_1 == 1


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_not_taken_for_a_negative(seed):
    source = torch.Generator().manual_seed(seed)
    skewed = torch.rand(300, 12, generator=source).pow(8)
    noise = torch.randn(100, 12, generator=source)
    assert not mirrored(*(rows.double() - rows.double().mean(dim=0) for rows in (skewed, noise)))


def test_a_table_is_compared_by_its_numbers():
    table = unlabelled(torch.rand(30, 12))
    assert play(NearestNeighbour(), Identity(), table).top_1 == 1


def test_blank_rows_tie_instead_of_failing():
    private = images()
    private.samples[:] = 0.5
    scheme = Identity().fit(private, 0)
    scores = (
        NearestNeighbour().fit(View(private, scheme, private, private), 0).score(Release(private.samples, None, None))
    )
    assert not scores.block(slice(None), slice(None)).any()


def test_features_are_the_same_for_the_same_seed():
    private = images(10)
    view = View(images(seed=9), Identity().fit(private, 0), private, private)
    one, two = (SMALL_FEATURES.fit(view, 3).score(Release(private.samples, None, None)) for _ in range(2))
    assert torch.equal(one.a, two.a)


def test_rows_of_another_shape_are_not_applicable():
    private = images()
    view = View(private, Identity().fit(private, 0), private, private)
    with pytest.raises(NotApplicable, match=r"raw rows are \(1, 16, 16\), released ones \(5,\)"):
        NearestNeighbour().fit(view, 0).score(Release(torch.rand(40, 5), None, None))
    with pytest.raises(NotApplicable, match=r"images of 1 channels: released rows are \(3, 8, 8\)"):
        SMALL_FEATURES.fit(view, 0).score(Release(torch.rand(40, 3, 8, 8), None, None))


def test_features_need_images_and_labels():
    table = unlabelled(torch.rand(30, 12))
    bare = unlabelled(torch.rand(30, 1, 8, 8))
    for rows, reason in ((table, "space=features reads images like the public ones"), (bare, "made has none")):
        with pytest.raises(NotApplicable, match=reason):
            SMALL_FEATURES.fit(View(rows, Identity().fit(rows, 0), rows, rows), 0)


def test_an_unknown_space_is_refused():
    with pytest.raises(ValueError, match="pixels, features, mobilenet-v2, efficientnet-lite0; got 'wavelets'"):
        NearestNeighbour(space="wavelets")


def test_many_large_images_are_compared_at_a_smaller_side_and_the_record_says_so(monkeypatch):
    # As coarse as their texture, so that the means of pixels tell them apart as the pixels do.
    coarse = torch.rand(40, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    private = unlabelled(coarse.repeat_interleave(4, dim=2).repeat_interleave(4, dim=3))
    scheme = DPSimple(scale=0.5).fit(private, 0)
    release = scheme.sample_key(Secret.of_seed(1)).release(private)
    view = View(private, scheme, private, private)
    plain = NearestNeighbour().fit(view, 0)
    assert plain.notes() == {}
    assert plain.score(release).a.shape[1] == 256 + 2
    monkeypatch.setattr(nearest_neighbour, "PRODUCTS", 40 * 40 * 8 * 8)
    small = NearestNeighbour().fit(view, 0)
    scores = small.score(release)
    assert scores.a.shape[1] == 64 + 2
    assert small.notes()["compared at"] == "8 x 8 of 16 x 16 pixels"
    assert torch.equal(scores.block(slice(None), slice(None)).argmax(dim=0), torch.arange(40))


def test_sides_are_bounded_for_images_alone():
    assert smaller_sides((10, 1, 8, 8), 10 * 10 * 64) is None
    assert smaller_sides((10, 1, 8, 8), 10 * 10 * 64 - 1) == (4, 4)
    assert smaller_sides((10, 3, 8, 4), 1) == (1, 1)
    assert smaller_sides((10, 64), 1) is None


class Coarse:
    """In place of a package: a network that sees means over 4 x 4 areas."""

    sha256 = "0" * 64

    def network(self, *, side, batch, instead):
        assert (side, batch) == (96, 32)
        return self

    def read(self, samples):
        return torch.nn.functional.adaptive_avg_pool2d(samples, 4).flatten(1)


def test_a_network_of_a_package_describes_both_sides(monkeypatch):
    monkeypatch.setitem(packages.PACKAGES, "mobilenet-v2", Coarse())
    attack = NearestNeighbour(space="mobilenet-v2")
    assert not attack.needs_public
    assert play(attack, Identity(), images(), public=images(seed=9)).top_1 == 1
    assert play(attack, Noise(), images(400), public=images(seed=9)).top_1 <= 8 / 400
    view = View(images(), Identity().fit(images(), 0), images(), images(), 0)
    assert attack.fit(view, 0).notes() == {"side that the network reads": 96, "weights": "0" * 64}
    table = replace(images(), samples=torch.rand(40, 9))
    with pytest.raises(NotApplicable, match="space=mobilenet-v2 reads images, and these rows are vectors"):
        attack.fit(replace(view, candidates=table), 0)


def test_an_absent_package_is_named_with_what_to_install(monkeypatch):
    absent = replace(packages.PACKAGES["mobilenet-v2"], install="never-published==1.0")
    monkeypatch.setitem(packages.PACKAGES, "mobilenet-v2", absent)
    view = View(images(), Identity().fit(images(), 0), images(), images(), 0)
    with pytest.raises(DataError, match=r"never-published is not installed: run .*or choose space=pixels"):
        NearestNeighbour(space="mobilenet-v2").fit(view, 0)
