import pytest
import torch
from made.datasets import uniform, unlabelled

from bench.randomness import Secret
from bench.types import NotApplicable
from methods.dauntless import Dauntless


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 8, 12)])
def test_each_patch_location_has_a_linear_map_of_its_own(shape):
    private = uniform(7, *shape)
    key = Dauntless(patch_size=4).fit(private, 0).sample_key(Secret.of_seed(1))
    released = key.release(private).samples
    assert released.shape == private.samples.shape
    location = 0
    for top in range(0, shape[1], 4):
        for left in range(0, shape[2], 4):
            raw = private.samples[:, :, top : top + 4, left : left + 4].flatten(1)
            encoded = released[:, :, top : top + 4, left : left + 4].flatten(1)
            assert torch.allclose(encoded, raw @ key.weights[location], atol=1e-4)
            location += 1
    assert location == len(key.weights)


def test_the_map_is_linear_and_the_same_for_every_image_and_query():
    private = uniform(7, 1, 8, 8)
    key = Dauntless(patch_size=4).fit(private, 0).sample_key(Secret.of_seed(1))
    released = key.release(private).samples
    one, two = private.samples[:1], private.samples[1:2]
    assert torch.allclose(key.query(2 * one - two), 2 * released[:1] - released[1:2], atol=1e-4)
    assert torch.allclose(key.query(one), released[:1], atol=1e-5)


def test_weights_are_standard_normal():
    weights = Dauntless().fit(uniform(7, 1, 32, 32), 0).sample_key(Secret.of_seed(1)).weights.double()
    count = 4 * 256**2
    assert weights.numel() == count
    # Five standard errors of mean, variance and fourth moment (variances 1, 2 and 96).
    for moment, expected, variance in ((1, 0, 1), (2, 1, 2), (4, 3, 96)):
        assert abs(float(weights.pow(moment).mean()) - expected) < 5 * (variance / count) ** 0.5


def test_seeds_make_keys():
    private, scheme = uniform(7, 1, 8, 8), Dauntless(patch_size=4).fit(uniform(7, 1, 8, 8), 0)
    one, same, other = (scheme.sample_key(Secret.of_seed(seed)).release(private).samples for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.allclose(one, other)


def test_a_key_survives_its_state():
    private, method = uniform(7, 1, 8, 8), Dauntless(patch_size=4)
    scheme = method.fit(private, 0)
    key = scheme.sample_key(Secret.of_seed(1))
    again = method.load(scheme.state()).load_key(key.state())
    assert torch.equal(key.release(private).samples, again.release(private).samples)
    assert again.scheme == scheme


def test_inputs_stay_untouched():
    private = uniform(7, 1, 8, 8)
    before = private.samples.clone()
    key = Dauntless(patch_size=4).fit(private, 0).sample_key(Secret.of_seed(1))
    key.release(private).samples.zero_()
    assert torch.equal(private.samples, before)


def test_a_patch_that_does_not_divide_is_not_applicable_and_says_what_is():
    with pytest.raises(NotApplicable, match="16 does not divide 28x28; set patch_size to one of 1, 2, 4, 7, 14, 28"):
        Dauntless().fit(uniform(7, 1, 28, 28), 0)


def test_tables_are_not_applicable():
    with pytest.raises(NotApplicable, match="made is a table"):
        Dauntless().fit(unlabelled(torch.rand(5, 3)), 0)


def test_images_of_another_shape_are_refused():
    key = Dauntless(patch_size=4).fit(uniform(7, 1, 8, 8), 0).sample_key(Secret.of_seed(1))
    with pytest.raises(ValueError, match=r"shape \(1, 8, 8\), got \(1, 12, 12\)"):
        key.query(torch.rand(2, 1, 12, 12))


def test_a_scheme_of_another_patch_size_is_refused():
    with pytest.raises(ValueError, match="patch_size 4, this method has 8"):
        Dauntless(patch_size=8).load(Dauntless(patch_size=4).fit(uniform(7, 1, 8, 8), 0).state())
