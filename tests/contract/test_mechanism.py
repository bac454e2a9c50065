import math

import pytest
import torch
from scipy.integrate import quad

from bench.contract.mechanism import Mechanism
from bench.seeds import generator


class Plain(Mechanism):
    """Noise of given scales and bounds."""

    def __init__(self, scale, low=None, high=None):
        self._scale = torch.tensor(scale, dtype=torch.float64)
        self._fence = None if low is None else (torch.full_like(self._scale, low), torch.full_like(self._scale, high))

    @property
    def scale(self):
        return self._scale

    @property
    def fence(self):
        return self._fence

    def locate(self, data):
        return data.samples.double()

    def observe(self, release):
        return release.samples.double()


def density(mechanism, located, observed):
    rows = (torch.tensor(numbers, dtype=torch.float64) for numbers in (located, observed))
    return mechanism.log_density(*rows)


def test_the_density_without_a_fence_is_that_of_independent_laplace_numbers():
    found = density(Plain([2.0, 0.5]), [[0.0, 1.0], [1.0, 1.0]], [[1.0, 0.5]])
    expected = [-0.5 - math.log(4) - 1 - math.log(1), 0 - math.log(4) - 1 - math.log(1)]
    assert found[:, 0].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("located", [-1.0, 0.3, 1.0])
def test_density_within_the_fence_and_mass_at_its_ends_add_up_to_one(located):
    mechanism = Plain([0.7], -1.0, 1.0)
    inside = quad(lambda x: math.exp(density(mechanism, [[located]], [[x]])), -0.999, 0.999, points=[located])[0]
    ends = [math.exp(density(mechanism, [[located]], [[end]])) for end in (-1.0, 1.0)]
    assert ends[1] == pytest.approx(math.exp(-(1 - located) / 0.7) / 2)
    # What is left out between the integral's ends and the fence: at most .002 of density 1 / 1.4.
    assert inside + sum(ends) == pytest.approx(1, abs=0.0015)


def test_an_element_that_never_varies_says_nothing():
    one, both = Plain([2.0]), Plain([2.0, 0.0])
    assert density(both, [[0.0, 3.0]], [[1.0, 4.0]]) == density(one, [[0.0]], [[1.0]])
    assert both.noise(torch.tensor([[0.0, 3.0]]), torch.tensor([[1.0, 4.0]])).isnan().tolist() == [[False, True]]


def test_a_pair_has_the_same_bits_in_every_block():
    a, b = torch.randn(50, 37, generator=generator(1)), torch.randn(70, 37, generator=generator(2))
    mechanism = Plain([0.3] * 37, -2.0, 2.0)
    whole = mechanism.log_density(a.clamp(-2, 2), b.clamp(-2, 2))
    part = mechanism.log_density(a[7:44].clamp(-2, 2), b[3:4].clamp(-2, 2))
    assert torch.equal(part, whole[7:44, 3:4])
    assert torch.allclose(
        mechanism.log_density(a.clamp(-2, 2), b.clamp(-2, 2)).argmax(dim=0),
        torch.cdist(a.clamp(-2, 2).double(), b.clamp(-2, 2).double(), p=1).argmin(dim=0),
    )


def test_noise_is_seen_where_the_fence_did_not_stop_it():
    mechanism = Plain([0.5, 0.5, 0.5], -1.0, 1.0)
    found = mechanism.noise(torch.tensor([[0.0, 0.9, -1.0]]), torch.tensor([[0.25, 1.0, -1.0]]))
    assert found[0, 0] == 0.5
    assert found[0, 1:].isnan().all()


def test_next_to_the_fence_is_on_it():
    mechanism = Plain([0.5], -1.0, 1.0)
    observed = torch.tensor([[1.0 - 4e-4], [1.0 - 6e-4], [-1.0 + 4e-4]])
    assert mechanism.stopped(observed)[:, 0].tolist() == [True, False, True]
