"""Distances of the set metrics beside SciPy and scikit-learn, whose float64 results they must equal."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from scipy.spatial.distance import pdist
from sklearn.neighbors import NearestNeighbors

from metrics.dispersion import distance_sums
from metrics.nearest_neighbour_distance import nearest

N, D = 1500, 4096
DISPERSION = f"dispersion, n = {N}, d = {D}"
NEAREST = f"nearest neighbour, n = m = {N}, d = {D}"


@pytest.fixture(scope="module")
def sets() -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(0)
    return (
        torch.randn(N, D, generator=source, dtype=torch.float64),
        torch.randn(N, D, generator=source, dtype=torch.float64),
    )


@pytest.fixture(scope="module")
def expected_sum(sets: tuple[torch.Tensor, torch.Tensor]) -> float:
    return float(torch.pdist(sets[0]).sum())


@pytest.mark.benchmark(group=DISPERSION)
def test_baseline_scipy_pdist(
    benchmark: BenchmarkFixture, sets: tuple[torch.Tensor, torch.Tensor], expected_sum: float
) -> None:
    total = benchmark.pedantic(lambda: float(pdist(sets[0].numpy()).sum()), rounds=3)
    assert total == pytest.approx(expected_sum)


@pytest.mark.benchmark(group=DISPERSION)
def test_distance_sums(
    benchmark: BenchmarkFixture, sets: tuple[torch.Tensor, torch.Tensor], expected_sum: float
) -> None:
    assert float(benchmark(distance_sums, sets[0]).sum() / 2) == pytest.approx(expected_sum)


@pytest.fixture(scope="module")
def expected_nearest(sets: tuple[torch.Tensor, torch.Tensor]) -> np.ndarray:
    return np.asarray(torch.cdist(*sets, compute_mode="donot_use_mm_for_euclid_dist").amin(dim=1))


@pytest.mark.benchmark(group=NEAREST)
def test_baseline_scikit_learn_brute_force(
    benchmark: BenchmarkFixture, sets: tuple[torch.Tensor, torch.Tensor], expected_nearest: np.ndarray
) -> None:
    raw, released = (rows.numpy() for rows in sets)

    def search() -> np.ndarray:
        return NearestNeighbors(n_neighbors=1, algorithm="brute").fit(released).kneighbors(raw)[0][:, 0]

    np.testing.assert_allclose(benchmark(search), expected_nearest)


@pytest.mark.benchmark(group=NEAREST)
def test_nearest(
    benchmark: BenchmarkFixture, sets: tuple[torch.Tensor, torch.Tensor], expected_nearest: np.ndarray
) -> None:
    np.testing.assert_allclose(benchmark(nearest, *sets).numpy(), expected_nearest)
