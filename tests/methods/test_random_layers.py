import pytest
import torch
from made.datasets import uniform, unlabelled
from torch.nn.functional import layer_norm, selu

from bench.randomness import Secret
from bench.types import NotApplicable
from methods.random_layers import RandomLayers


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 8, 12)])
def test_each_patch_goes_through_layers_of_its_own(shape):
    private = uniform(7, *shape)
    key = RandomLayers(depth=2, patch_size=4).fit(private, 0).sample_key(Secret.of_seed(1))
    released = key.release(private).samples
    assert released.shape == private.samples.shape
    location = 0
    for top in range(0, shape[1], 4):
        for left in range(0, shape[2], 4):
            patch = private.samples[:, :, top : top + 4, left : left + 4].flatten(1)
            for weights in key.weights[:, location]:
                patch = layer_norm(selu(patch @ weights[:-1] + weights[-1]), patch.shape[1:])
            encoded = released[:, :, top : top + 4, left : left + 4].flatten(1)
            assert torch.allclose(encoded, patch, atol=1e-4)
            location += 1
    assert location == key.weights.shape[1]


def test_weights_are_standard_normal_and_every_layer_and_location_has_its_own():
    weights = RandomLayers().fit(uniform(7, 1, 32, 32), 0).sample_key(Secret.of_seed(1)).weights.double()
    assert weights.shape == (3, 4, 257, 256)
    # Five standard errors of mean, variance and fourth moment (variances 1, 2 and 96).
    for moment, expected, variance in ((1, 0, 1), (2, 1, 2), (4, 3, 96)):
        assert abs(float(weights.pow(moment).mean()) - expected) < 5 * (variance / weights.numel()) ** 0.5
    flat = weights.flatten(2).flatten(0, 1)
    # Correlations of unrelated maps have deviation 1 / root of their size; five of them.
    assert float((torch.corrcoef(flat) - torch.eye(12)).abs().max()) < 5 / flat.shape[1] ** 0.5


def test_an_encoding_depends_on_neither_the_other_images_nor_the_call():
    private = uniform(7, 1, 8, 8)
    key = RandomLayers(patch_size=4).fit(private, 0).sample_key(Secret.of_seed(1))
    released = key.release(private).samples
    assert torch.allclose(key.query(private.samples[2:3]), released[2:3], atol=1e-5)


def test_seeds_make_keys():
    private, scheme = uniform(7, 1, 8, 8), RandomLayers(patch_size=4).fit(uniform(7, 1, 8, 8), 0)
    one, same, other = (scheme.sample_key(Secret.of_seed(seed)).release(private).samples for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.allclose(one, other)


def test_a_key_survives_its_state():
    private, method = uniform(7, 1, 8, 8), RandomLayers(depth=2, patch_size=4)
    scheme = method.fit(private, 0)
    key = scheme.sample_key(Secret.of_seed(1))
    again = method.load(scheme.state()).load_key(key.state())
    assert torch.equal(key.release(private).samples, again.release(private).samples)
    assert again.scheme == scheme


def test_inputs_stay_untouched_and_labels_as_they_are():
    private = uniform(7, 1, 8, 8)
    before = private.samples.clone()
    release = RandomLayers(patch_size=4).fit(private, 0).sample_key(Secret.of_seed(1)).release(private)
    release.samples.zero_()
    assert torch.equal(private.samples, before)
    assert torch.equal(release.labels, private.labels)


def test_patches_that_do_not_divide_or_hold_one_number_are_not_applicable():
    with pytest.raises(NotApplicable, match="16 does not do for 1x28x28; set patch_size to one of 2, 4, 7, 14, 28"):
        RandomLayers().fit(uniform(7, 1, 28, 28), 0)
    with pytest.raises(NotApplicable, match="more than one number"):
        RandomLayers(patch_size=1).fit(uniform(7, 1, 8, 8), 0)
    assert RandomLayers(patch_size=1).fit(uniform(7, 3, 8, 8), 0)


def test_tables_are_not_applicable():
    with pytest.raises(NotApplicable, match="made is a table"):
        RandomLayers().fit(unlabelled(torch.rand(5, 3)), 0)


def test_images_of_another_shape_are_refused():
    key = RandomLayers(patch_size=4).fit(uniform(7, 1, 8, 8), 0).sample_key(Secret.of_seed(1))
    with pytest.raises(ValueError, match=r"shape \(1, 8, 8\), got \(1, 12, 12\)"):
        key.query(torch.rand(2, 1, 12, 12))


def test_a_scheme_of_other_parameters_and_senseless_ones_are_refused():
    state = RandomLayers(depth=2, patch_size=4).fit(uniform(7, 1, 8, 8), 0).state()
    with pytest.raises(ValueError, match="depth 2 and patch_size 4, this method has 3 and 4"):
        RandomLayers(patch_size=4).load(state)
    with pytest.raises(ValueError, match="depth must be at least 1, got 0"):
        RandomLayers(depth=0)
