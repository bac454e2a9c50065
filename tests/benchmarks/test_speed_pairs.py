"""The sweep over all pair scores beside the bare product that makes them, and beside scikit-learn on the whole grid.

    OMP_NUM_THREADS=1 pytest tests/benchmarks/test_speed_pairs.py --benchmark-only
    PAIRS=10000,57696 OMP_NUM_THREADS=1 pytest tests/benchmarks/test_speed_pairs.py --benchmark-only

The figure in brackets is the ratio to the fastest of its group, which is the baseline: float32 products of blocks of
1024 x 1024. Half of the groups have an attack that finds everyone, half have one at chance, where so many scores lie
close to linked ones that float32 cannot place them and float64 products, twice as dear, are counted instead. CPU time,
so that neighbours on the machine do not count; the peak of memory beyond the scores stands in the `extra_info` (and is
printed with -s).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from made.dense_scores import diagonal
from made.peak_memory import measure_peak
from pytest_benchmark.fixture import BenchmarkFixture
from sklearn.metrics import roc_auc_score

from bench.pairs.score_matrices import CosineScores
from bench.pairs.sweep import Engine, Grid, blocks, count, count_grids

D = 256
SIZES = [int(size) for size in os.environ.get("PAIRS", "2000").split(",")]
DENSE = 10_000
ATTACKS = {"found": 1.0, "chance": 0.0}
CASES = [(n, attack) for n in SIZES for attack in ATTACKS]

pytestmark = [
    pytest.mark.benchmark(timer=time.process_time),
    pytest.mark.parametrize(("n", "attack"), CASES, ids=[f"{n}-{attack}" for n, attack in CASES]),
]


def make(n: int, attack: str) -> CosineScores:
    """Released rows that are the raw ones with noise, or nothing but noise."""
    source = torch.Generator().manual_seed(0)
    raw = torch.randn(n, D, generator=source)
    return CosineScores(raw, ATTACKS[attack] * raw + torch.randn(n, D, generator=source))


def measure(benchmark: BenchmarkFixture, group: str, n: int, run: Callable[[], object]) -> None:
    benchmark.group = group
    benchmark.pedantic(run, rounds=7 if n < 5000 else 3 if n < 20_000 else 1, warmup_rounds=1 if n < 20_000 else 0)


def bare_products(a: torch.Tensor, b: torch.Tensor) -> None:
    memory = torch.empty(1024 * 1024)
    for rows, cols in blocks((len(a), len(b)), 1024):
        left, right = a[rows], b[cols]
        torch.mm(left, right.T, out=memory[: len(left) * len(right)].view(len(left), len(right)))


def test_baseline_bare_blocked_product(benchmark: BenchmarkFixture, n: int, attack: str) -> None:
    scores = make(n, attack)
    a, b = scores.a.to(torch.float32), scores.b.to(torch.float32)
    measure(benchmark, f"pairs, n = m = {n}, {attack}", n, lambda: bare_products(a, b))


@pytest.mark.parametrize("engine", ["numba", "torch"])
def test_pair_sweep(benchmark: BenchmarkFixture, n: int, attack: str, engine: Engine) -> None:
    scores, links = make(n, attack), diagonal(n)
    count(make(300, attack), diagonal(300), engine=engine)
    measure(benchmark, f"pairs, n = m = {n}, {attack}", n, lambda: count(scores, links, engine=engine))


@pytest.mark.parametrize("engine", ["numba", "torch"])
def test_memory_of_the_sweep(benchmark: BenchmarkFixture, n: int, attack: str, engine: Engine) -> None:
    peak = measure_peak(benchmark, PEAK.format(name=__name__, n=n, attack=attack, engine=engine))
    print(f"n = m = {n}, {attack}, {engine}: {peak:.0f} MB beyond the scores")


PEAK = """
from made.peak_memory import taken
from {name} import count, diagonal, make
count(make(1000, "{attack}"), diagonal(1000), engine="{engine}")
scores, links = make({n}, "{attack}"), diagonal({n})
print(taken(lambda: count(scores, links, engine="{engine}")))
"""


def test_scikit_learn_auc_and_argsort_of_the_whole_grid(benchmark: BenchmarkFixture, n: int, attack: str) -> None:
    if n > DENSE:
        pytest.skip(f"the whole grid has {n * n:.1e} scores: 50 bytes of memory each")
    scores, truth = make(n, attack), np.eye(n, dtype=bool).ravel()

    def dense() -> float:
        grid = scores.block(slice(0, n), slice(0, n)).numpy().ravel()
        guesses = int(np.argmax(truth[np.argsort(-grid, kind="stable")])) + 1
        return guesses + float(roc_auc_score(truth, grid))

    benchmark.group = f"pairs, n = m = {n}, {attack}"
    benchmark.pedantic(dense, rounds=1)


def halves(n: int) -> list[torch.Tensor]:
    source = torch.Generator().manual_seed(1)
    return [torch.randperm(n, generator=source)[: n // 2].sort().values for _ in range(10)]


def test_baseline_ten_bare_products_of_half_samples(benchmark: BenchmarkFixture, n: int, attack: str) -> None:
    scores = make(n, attack)
    a, b = scores.a.to(torch.float32), scores.b.to(torch.float32)

    def multiply() -> None:
        for rows in halves(n):
            bare_products(a[rows], b[rows])

    measure(benchmark, f"ten half samples, n = m = {n}, {attack}", n, multiply)


@pytest.mark.parametrize("engine", ["numba", "torch"])
def test_ten_half_samples_from_one_sweep(benchmark: BenchmarkFixture, n: int, attack: str, engine: Engine) -> None:
    scores, links = make(n, attack), diagonal(n)
    grids = [Grid(rows, rows, [links[rows]]) for rows in halves(n)]
    count(make(300, attack), diagonal(300), engine=engine)
    measure(
        benchmark,
        f"ten half samples, n = m = {n}, {attack}",
        n,
        lambda: count_grids(scores, grids, engine=engine),
    )
