"""Clusters of one size beside the published way of forming them: all distances kept, and added up anew in every round.

    OMP_NUM_THREADS=1 pytest tests/benchmarks/test_speed_k_same.py --benchmark-only
    ROWS=5000,20000 OMP_NUM_THREADS=1 pytest tests/benchmarks/test_speed_k_same.py --benchmark-only

The figure in brackets is the ratio to the faster of the two. CPU time, so that neighbours on the machine do not count;
the peak of memory beyond the rows stands in the `extra_info` (and is printed with -s). Two kinds of rows: `features`
vary in few directions and come in groups, as features of images do; `noise` is as hard as it gets, normal numbers in
all directions alike, where all sums are nearly equal and rows have to be measured again and again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest
import torch
from made.peak_memory import measure_peak
from pytest_benchmark.fixture import BenchmarkFixture
from scipy.spatial.distance import squareform
from torch import Tensor

from bench.owner.same_size_clusters import same_size_clusters

SIZES = [int(size) for size in os.environ.get("ROWS", "1000").split(",")]
RESCANNED = 5000
CASES = [(n, d, kind) for n in SIZES for d in (64, 768) for kind in ("features", "noise")]

pytestmark = [
    pytest.mark.benchmark(timer=time.process_time),
    pytest.mark.parametrize(("n", "d", "kind"), CASES, ids=[f"{n}x{d}-{kind}" for n, d, kind in CASES]),
]


def make(n: int, d: int, kind: str) -> Tensor:
    source = torch.Generator().manual_seed(0)
    rows = torch.randn(n, d, generator=source)
    if kind == "noise":
        return rows
    centres = torch.randn(8, d, generator=source)[torch.randint(8, (n,), generator=source)]
    directions = torch.linspace(2, 0.3, 40)[:, None] * torch.randn(40, d, generator=source)
    return centres / 2 + torch.randn(n, 40, generator=source) @ directions / 6 + 0.3 * rows


def rescans(rows: Tensor, k: int) -> Tensor:
    """The published way, of n rows the last n % k being dropped. Of equal sums or distances any comes first."""
    n = len(rows) - len(rows) % k
    distances = torch.Tensor(squareform(torch.pdist(rows[:n]).numpy())).clone()
    distances += torch.diag(torch.full((n,), torch.nan))
    cluster = torch.full((n,), -1)
    for number in range(n // k):
        sums = torch.nansum(distances, dim=1).masked_fill_(cluster >= 0, -1)
        seed = sums.argmax()
        taken = torch.cat((seed[None], distances[seed].argsort()[: k - 1]))
        cluster[taken] = number
        distances[taken] = torch.nan
        distances[:, taken] = torch.nan
    return cluster


WAYS: dict[str, Callable[[Tensor, int], Tensor]] = {"ours": same_size_clusters, "rescans": rescans}


@pytest.mark.parametrize("k", [2, 5, 10, 15])
@pytest.mark.parametrize("way", WAYS)
def test_clusters(benchmark: BenchmarkFixture, n: int, d: int, kind: str, k: int, way: str) -> None:
    if way == "rescans" and n > RESCANNED:
        pytest.skip(f"{n // k} rescans of {n * n:.1e} distances")
    rows = make(n, d, kind)
    WAYS[way](rows[:50], k)
    benchmark.group = f"n = {n}, d = {d}, {kind}, k = {k}"
    benchmark.pedantic(lambda: WAYS[way](rows, k), rounds=1 if way == "rescans" or n > RESCANNED else 3)


@pytest.mark.parametrize("way", WAYS)
def test_memory(benchmark: BenchmarkFixture, n: int, d: int, kind: str, way: str) -> None:
    if way == "rescans" and n > RESCANNED:
        pytest.skip(f"{n * n:.1e} distances")
    peak = measure_peak(benchmark, PEAK.format(name=__name__, n=n, d=d, kind=kind, way=way))
    print(f"n = {n}, d = {d}, {kind}, {way}: {peak:.0f} MB beyond the rows")


PEAK = """
from made.peak_memory import taken
from {name} import WAYS, make
run = WAYS["{way}"]
run(make(100, {d}, "{kind}"), 15)
rows = make({n}, {d}, "{kind}")
print(taken(lambda: run(rows, 15)))
"""
