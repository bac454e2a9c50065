import math

import pytest
import torch
from made.datasets import uniform

from bench.randomness import Secret
from bench.types import NotApplicable
from methods.blur import Blur


def key(data, **choices):
    return Blur(**choices).fit(data, 0).sample_key(Secret.of_seed(1))


def test_a_point_becomes_a_gaussian_of_the_stated_deviation():
    data = uniform(1, 1, 64, 64)
    data.samples.zero_()[..., 32, 32] = 1
    out = key(data, sigma=3.0).release(data).samples[0, 0].double()
    offsets = torch.arange(64.0, dtype=torch.float64) - 32
    weights = torch.exp(-(offsets**2) / 18) * (offsets.abs() <= 12)  # a twin, cut off at four deviations
    expected = torch.outer(weights, weights) / weights.sum() ** 2
    assert torch.allclose(out, expected, atol=1e-6)


def test_the_same_sigma_blurs_a_larger_image_by_more_pixels():
    spreads = []
    for side in (64, 128):
        data = uniform(1, 1, side, side)
        data.samples.zero_()[..., side // 2, side // 2] = 1
        row = key(data, sigma=2.0).query(data.samples)[0, 0].sum(dim=0).double()
        spreads.append(math.sqrt(float((row * (torch.arange(side) - side // 2) ** 2).sum())))
    assert spreads == pytest.approx([2.0, 4.0], rel=0.01)


@pytest.mark.parametrize("shape", [(16, 64), (64, 16)])
def test_the_longer_side_is_what_sigma_refers_to(shape):
    data = uniform(1, 1, *shape)
    data.samples.zero_()[..., shape[0] // 2, shape[1] // 2] = 1
    along = key(data, sigma=2.0).query(data.samples)[0, 0].sum(dim=shape.index(16)).double()
    assert float((along * (torch.arange(64) - 32) ** 2).sum()) == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("shape", [(2, 3, 28, 28), (2, 1, 9, 40), (2, 1, 1, 1)])
def test_any_size_keeps_its_shape_and_range(shape):
    data = uniform(*shape)
    out = key(data, sigma=20.0).release(data).samples
    assert out.shape == shape
    assert out.min() >= data.samples.min() - 1e-6
    assert out.max() <= data.samples.max() + 1e-6


def test_queries_are_blurred_like_releases_and_inputs_stay_untouched():
    data = uniform(3, 1, 16, 16)
    before, secret = data.samples.clone(), key(data)
    assert torch.equal(secret.query(data.samples), secret.release(data).samples)
    assert not torch.equal(secret.query(data.samples), data.samples)
    assert torch.equal(data.samples, before)


def test_nothing_is_claimed():
    scheme = Blur().fit(uniform(2, 1, 16, 16), 0)
    assert scheme.claim() is None
    assert scheme.mechanism() is None


def test_tables_are_not_applicable():
    with pytest.raises(NotApplicable, match="made, a table"):
        Blur().fit(uniform(5, 3), 0)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.inf, math.nan])
def test_senseless_sigmas_are_refused(sigma):
    with pytest.raises(ValueError, match="sigma must be positive and finite"):
        Blur(sigma=sigma)
