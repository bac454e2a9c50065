"""Sums over rows with Gaussian noise: the budget, the grid, and a second accountant."""

import numpy as np
import pytest
import scipy.stats
import torch

from bench.nets.private_training import delta_for
from bench.owner.gaussian_sum import GaussianSum, accounts, calibrated, delta_of
from bench.randomness import Secret


@pytest.mark.parametrize(("epsilon", "mu"), [(0.1, 0.3), (1.0, 1.0), (3.0, 0.8), (10.0, 4.0)])
def test_delta_is_the_mass_by_which_one_density_exceeds_the_other(epsilon: float, mu: float) -> None:
    points = np.linspace(-40, 40 + mu, 2_000_001)
    excess = scipy.stats.norm.pdf(points - mu) - np.exp(epsilon) * scipy.stats.norm.pdf(points)
    integral = np.clip(excess, 0, None).sum() * (points[1] - points[0])
    assert delta_of(epsilon, mu) == pytest.approx(integral, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-5, 1e-7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_second_accountant_finds_the_budget_that_noise_was_calibrated_to(epsilon: float, delta: float) -> None:
    pytest.importorskip("dp_accounting")
    mu = calibrated(epsilon, delta)
    for releases in (1, 7):
        spent = accounts(mu / releases**0.5, delta, releases=releases)
        assert len(spent) == 2
        for account in spent.values():
            assert account == pytest.approx(epsilon, rel=1e-4)


def test_no_less_noise_would_keep_the_budget() -> None:
    mu = calibrated(1.0, 1e-5)
    assert delta_of(1.0, mu) <= 1e-5 < delta_of(1.0, 1.0001 * mu)


def test_a_budget_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"epsilon must be in \[0.001, 500\]"):
        calibrated(501.0, 1e-5)
    with pytest.raises(ValueError, match="delta must be above 0"):
        calibrated(1.0, 0.0)
    with pytest.raises(ValueError, match=r"delta must be below 1 / n, 0\.01 for 100 rows, got 0\.01"):
        delta_for(0.01, 100)
    assert (delta_for(None, 100), delta_for(None, 2**20), delta_for(1e-3, 100)) == (1e-5, 0.1 / 2**20, 1e-3)


def test_vectors_come_onto_the_grid_no_longer_than_they_were() -> None:
    noise = GaussianSum(0.37)
    vectors = torch.nn.functional.normalize(torch.randn(200, 50, generator=torch.Generator().manual_seed(0)), dim=1)
    places = noise.steps(vectors)
    noise.check(places.double().square().sum(dim=1))
    assert torch.allclose(places.double() * noise.grid.step, vectors.double(), atol=3e-6)
    with pytest.raises(AssertionError, match="at most 1 is allowed"):
        noise.check((2 * places).double().square().sum(dim=1))


def test_noise_has_its_deviation_and_belongs_to_the_stream() -> None:
    noise, zeros = GaussianSum(2.5), torch.zeros(20_000, dtype=torch.int64)
    first, same, other = (noise.noisy(zeros, Secret.of_seed(seed).stream()) for seed in (1, 1, 2))
    assert torch.equal(first, same)
    # The variance of a squared Gaussian number is 2 sigma^4; five standard errors.
    for drawn in (first, other):
        assert abs(float(drawn.square().mean()) / 6.25 - 1) < 5 * (2 / 20_000) ** 0.5
    assert abs(float((first * other).mean())) < 5 * 6.25 / 20_000**0.5
