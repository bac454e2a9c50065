"""Dispersion and nearest-neighbour distance beside the bare product, SciPy, torch, scikit-learn and faiss.

    OMP_NUM_THREADS=1 pytest tests/benchmarks/test_speed_distances.py --benchmark-only
    DISTANCES=10000 OMP_NUM_THREADS=1 pytest tests/benchmarks/test_speed_distances.py --benchmark-only

The figure in brackets is the ratio to the fastest of its group; `baseline` is the full float32 product in blocks of
1024 x 1024. CPU time, so that neighbours on the machine do not count. faiss and `torch.cdist` work in float32 and are
not exact at duplicates; they are here for their speed alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from scipy.spatial.distance import pdist
from sklearn.neighbors import NearestNeighbors

from bench.pairs.sweep import blocks
from bench.statistics.nearest_rows import nearest
from metrics.dispersion import distance_sums

D = 768
SIZES = [int(size) for size in os.environ.get("DISTANCES", "1500").split(",")]
T = TypeVar("T")

pytestmark = [pytest.mark.benchmark(timer=time.process_time), pytest.mark.parametrize("n", SIZES)]


def sets(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(0)
    first, second = (torch.randn(n, D, generator=source, dtype=torch.float64) for _ in range(2))
    return first, second


def measure(benchmark: BenchmarkFixture, what: str, n: int, run: Callable[[], T], *, rounds: int = 3) -> T:
    benchmark.group = f"{what}, n = {n}, d = {D}"
    return benchmark.pedantic(run, rounds=rounds if n < 5000 else min(rounds, 2), warmup_rounds=1 if n < 5000 else 0)


def bare_product(a: torch.Tensor, b: torch.Tensor) -> None:
    memory = torch.empty(1024 * 1024)
    for rows, cols in blocks((len(a), len(b)), 1024):
        height, width = rows.stop - rows.start, cols.stop - cols.start
        torch.mm(a[rows], b[cols].T, out=memory[: height * width].view(height, width))


@pytest.mark.parametrize("what", ["dispersion", "nearest neighbour"])
def test_baseline_bare_blocked_product(benchmark: BenchmarkFixture, n: int, what: str) -> None:
    a, b = (rows.float() for rows in sets(n))
    measure(benchmark, what, n, lambda: bare_product(a, b), rounds=5)


def test_dispersion(benchmark: BenchmarkFixture, n: int) -> None:
    rows = sets(n)[0]
    sums = measure(benchmark, "dispersion", n, lambda: distance_sums(rows), rounds=5)
    expected = torch.cdist(rows[:100], rows, compute_mode="donot_use_mm_for_euclid_dist").sum(dim=1)
    np.testing.assert_allclose(sums[:100], expected, rtol=1e-6)


def test_dispersion_by_scipy(benchmark: BenchmarkFixture, n: int) -> None:
    rows = sets(n)[0].numpy()
    assert measure(benchmark, "dispersion", n, lambda: float(pdist(rows).sum()), rounds=1) > 0


def test_dispersion_by_torch_in_float32(benchmark: BenchmarkFixture, n: int) -> None:
    rows = sets(n)[0].float()
    assert measure(benchmark, "dispersion", n, lambda: float(torch.cdist(rows, rows).sum())) > 0


def test_nearest(benchmark: BenchmarkFixture, n: int) -> None:
    a, b = sets(n)
    found = measure(benchmark, "nearest neighbour", n, lambda: nearest(a, b), rounds=5)
    expected = torch.cdist(a[:100], b, compute_mode="donot_use_mm_for_euclid_dist").amin(dim=1)
    np.testing.assert_allclose(found[:100], expected, rtol=1e-12)


def test_nearest_by_scikit_learn(benchmark: BenchmarkFixture, n: int) -> None:
    a, b = (rows.numpy() for rows in sets(n))

    def search() -> np.ndarray:
        return np.asarray(NearestNeighbors(n_neighbors=1, algorithm="brute").fit(b).kneighbors(a)[0][:, 0])

    np.testing.assert_allclose(measure(benchmark, "nearest neighbour", n, search), nearest(*sets(n)), rtol=1e-9)


def test_nearest_by_faiss_in_float32(benchmark: BenchmarkFixture, n: int) -> None:
    faiss = pytest.importorskip("faiss")
    a, b = (rows.float().numpy() for rows in sets(n))

    def search() -> np.ndarray:
        index = faiss.IndexFlatL2(D)
        index.add(b)
        return np.sqrt(np.asarray(index.search(a, 1)[0][:, 0]))

    np.testing.assert_allclose(measure(benchmark, "nearest neighbour", n, search), nearest(*sets(n)), rtol=1e-3)
