import pytest
import torch
from made.datasets import uniform, unlabelled
from torch import nn

from bench.nets.patches import cut
from bench.randomness import Secret
from bench.types import NotApplicable
from methods.neuracrypt import NeuraCrypt


def small(**choices):
    return NeuraCrypt(**({"patch_size": 4, "depth": 5} | choices))


def published(key, samples, channels):
    """The authors' network out of torch's own modules, in training mode, before the shuffle: (n, locations, width)."""
    width = channels * 16
    conv = nn.Conv2d(samples.shape[1], width, 4, stride=4)
    first = key.secret["first"]
    layers = [conv, nn.ReLU()]
    conv.weight.data, conv.bias.data = first[:-1].T.reshape(conv.weight.shape), first[-1]
    for weights in key.secret["hidden"]:
        hidden = nn.Conv2d(width, width, 1)
        hidden.weight.data, hidden.bias.data = weights[:-1].T[:, :, None, None], weights[-1]
        layers += [hidden, nn.BatchNorm2d(width, track_running_stats=False), nn.ReLU()]
    last = nn.Linear(width, width)
    last.weight.data, last.bias.data = key.secret["last"][:-1].T, key.secret["last"][-1]
    with torch.no_grad():
        encoded = nn.Sequential(*layers)(samples).flatten(2).transpose(1, 2)
        return last((encoded + key.secret["place"]).relu())


def sorted_patches(patches):
    """Patches of each image in the order of their first number, so that sets of patches can be compared."""
    order = patches[:, :, 0].argsort(dim=1)
    return patches.take_along_dim(order[:, :, None], dim=1)


@pytest.mark.parametrize(("shape", "channels"), [((1, 8, 8), 1), ((3, 8, 12), 2)])
def test_the_encoder_is_the_published_network_with_its_patches_shuffled(shape, channels):
    private = uniform(12, *shape)
    key = small(channels=channels).fit(private, 0).sample_key(Secret.of_seed(1))
    released = key.release(private).samples
    assert released.shape == (12, channels, *shape[1:])
    std, mean = torch.std_mean(private.samples, dim=(0, 2, 3), correction=0, keepdim=True)
    expected = published(key, (private.samples - mean) / std, channels)
    assert torch.allclose(sorted_patches(cut(released, 4)), sorted_patches(expected), atol=1e-4)


def test_patches_are_shuffled_for_each_image_on_its_own():
    same = unlabelled(uniform(12, 1, 8, 8).samples[:1].expand(200, 1, 8, 8).contiguous())
    key = small(statistics="fixed").fit(uniform(12, 1, 8, 8), 0).sample_key(Secret.of_seed(1))
    patches = cut(key.release(same).samples, 4)
    places = (patches[:, :, None] - patches[:1, None, :]).abs().amax(dim=3).argmin(dim=2)
    orders = {tuple(row) for row in places.tolist()}
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    # All 24 orders of 4 patches: each is missing from 200 images with probability (23 / 24)^200 = 2e-4.
    assert len(orders) == 24


def test_maps_are_uniform_and_places_standard_normal():
    secret = NeuraCrypt().fit(uniform(12, 1, 32, 32), 0).sample_key(Secret.of_seed(1)).secret
    assert secret["hidden"].shape == (4, 257, 256)
    for maps in (secret["first"], secret["hidden"], secret["last"]):
        scaled = maps.double() * 16
        assert float(scaled.abs().max()) <= 1
        # A uniform number within 1 has variance 1 / 3, and its square variance 1/5 - 1/9. Five standard errors.
        assert abs(float(scaled.mean())) < 5 * (1 / 3 / scaled.numel()) ** 0.5
        assert abs(float(scaled.square().mean()) - 1 / 3) < 5 * ((1 / 5 - 1 / 9) / scaled.numel()) ** 0.5
    assert secret["place"].shape == (4, 256)
    assert abs(float(secret["place"].square().mean()) - 1) < 5 * (2 / 1024) ** 0.5


def test_batch_statistics_make_an_encoding_depend_on_its_company_and_fixed_ones_do_not():
    private, others = uniform(16, 1, 8, 8), uniform(8, 1, 8, 8, seed=5)
    company = torch.cat((private.samples[:8], others.samples))
    for statistics, depends in (("batch", True), ("fixed", False)):
        key = small(statistics=statistics).fit(uniform(12, 1, 8, 8), 0).sample_key(Secret.of_seed(1))
        first, second = (sorted_patches(cut(key.query(rows)[:8], 4)) for rows in (private.samples, company))
        assert torch.allclose(first, second, atol=1e-4) is not depends


def test_batches_are_encoded_apart():
    private = uniform(20, 1, 8, 8)
    key = small(batch=8).fit(private, 0).sample_key(Secret.of_seed(1))
    whole, half = key.release(private).samples, key.query(private.samples[:10])
    assert torch.allclose(sorted_patches(cut(whole[:10], 4)), sorted_patches(cut(half, 4)), atol=1e-5)


def test_a_single_image_needs_fixed_statistics():
    private = uniform(12, 1, 8, 8)
    with pytest.raises(NotApplicable, match="at least 2 images at a time, got 1"):
        small().fit(private, 0).sample_key(Secret.of_seed(1)).query(private.samples[:1])
    assert len(small(statistics="fixed").fit(private, 0).sample_key(Secret.of_seed(1)).query(private.samples[:1])) == 1


def test_a_network_of_three_layers_has_no_batch_normalisation():
    private = uniform(12, 1, 8, 8)
    key = small(depth=3, statistics="fixed").fit(private, 0).sample_key(Secret.of_seed(1))
    assert len(key.secret["hidden"]) == len(key.secret["moments"]) == 0
    assert key.release(private).samples.shape == private.samples.shape


def test_seeds_make_keys():
    private, scheme = uniform(12, 1, 8, 8), small().fit(uniform(12, 1, 8, 8), 0)
    one, same, other = (scheme.sample_key(Secret.of_seed(seed)).release(private).samples for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.allclose(one, other)


@pytest.mark.parametrize("statistics", ["batch", "fixed"])
def test_a_key_survives_its_state_bit_for_bit(statistics):
    private, method = uniform(12, 1, 8, 8), small(statistics=statistics)
    scheme = method.fit(private, 0)
    key = scheme.sample_key(Secret.of_seed(1))
    again = method.load(scheme.state())
    assert torch.equal(key.release(private).samples, again.sample_key(Secret.of_seed(1)).release(private).samples)
    assert torch.equal(key.query(private.samples), again.load_key(key.state()).query(private.samples))


def test_the_scheme_holds_no_secret():
    state = small(statistics="fixed").fit(uniform(12, 1, 8, 8), 0).state()
    assert set(state) == {"shape", "mean", "std", "reference"}
    assert {row.numpy().tobytes() for row in state["reference"]} <= {
        row.numpy().tobytes() for row in uniform(12, 1, 8, 8).samples
    }


def test_inputs_stay_untouched():
    private = uniform(12, 1, 8, 8)
    before = private.samples.clone()
    small().fit(private, 0).sample_key(Secret.of_seed(1)).release(private).samples.zero_()
    assert torch.equal(private.samples, before)


def test_what_cannot_be_encoded_is_not_applicable():
    with pytest.raises(NotApplicable, match="16 does not divide 28x28; set patch_size to one of 1, 2, 4, 7, 14, 28"):
        NeuraCrypt().fit(uniform(12, 1, 28, 28), 0)
    with pytest.raises(NotApplicable, match="made is a table"):
        NeuraCrypt().fit(unlabelled(torch.rand(5, 3)), 0)
    with pytest.raises(NotApplicable, match="do not vary"):
        small().fit(unlabelled(torch.ones(5, 1, 8, 8)), 0)


def test_images_of_another_shape_and_schemes_of_other_parameters_are_refused():
    scheme = small().fit(uniform(12, 1, 8, 8), 0)
    with pytest.raises(ValueError, match=r"shape \(1, 8, 8\), got \(1, 12, 12\)"):
        scheme.sample_key(Secret.of_seed(1)).query(torch.rand(2, 1, 12, 12))
    with pytest.raises(ValueError, match=r"\(5, 4, 0, 0, 128\), this method has \(7, 4, 0, 0, 128\)"):
        small(depth=7).load(scheme.state())


@pytest.mark.parametrize(("colours", "channels", "ratio"), [(1, 1, 1.0), (3, 1, 3.0), (3, 8, 0.375), (3, None, 1.0)])
def test_what_a_vector_loses_of_its_patch_stands_in_the_record(colours, channels, ratio):
    scheme = small(channels=channels).fit(uniform(4, colours, 8, 8), 0)
    assert scheme.notes() == {"numbers of a patch for one of its token": ratio}
    assert small(channels=channels).load(scheme.state()).notes() == scheme.notes()
    assert scheme.sample_key(Secret.of_seed(1)).release(uniform(4, colours, 8, 8)).samples.shape[1] == (
        channels or colours
    )
