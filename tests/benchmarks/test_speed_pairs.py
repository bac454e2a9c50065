"""The sweep over all pair scores beside the bare product that makes them, and beside scikit-learn on the whole grid.

    pytest tests/benchmarks --benchmark-only

The figure in brackets is the ratio to the fastest of its group, which is the baseline.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from sklearn.metrics import roc_auc_score

from bench.nets.cosine import CosineScores
from metrics.pairs import BLOCK, blocks, count

N, D = 2000, 256
GROUP = f"pairs, n = m = {N}, d = {D}"


@pytest.fixture(scope="module")
def scores() -> CosineScores:
    source = torch.Generator().manual_seed(0)
    raw = torch.randn(N, D, generator=source)
    return CosineScores(raw, raw + torch.randn(N, D, generator=source))


@pytest.fixture(scope="module")
def links() -> torch.Tensor:
    return torch.arange(N).repeat(2, 1).T.contiguous()


@pytest.mark.benchmark(group=GROUP)
def test_baseline_bare_blocked_product(benchmark: BenchmarkFixture, scores: CosineScores) -> None:
    def multiply() -> int:
        return sum(scores.block(rows, cols).shape[0] for rows, cols in blocks(scores.shape, BLOCK))

    assert benchmark(multiply) == N * len(range(0, N, BLOCK))


@pytest.mark.benchmark(group=GROUP)
def test_pair_sweep(benchmark: BenchmarkFixture, scores: CosineScores, links: torch.Tensor) -> None:
    counts = benchmark(count, scores, links)
    assert int(counts.others.sum()) == N * (N - 1)


@pytest.mark.benchmark(group=GROUP)
def test_scikit_learn_auc_and_argsort_of_the_whole_grid(benchmark: BenchmarkFixture, scores: CosineScores) -> None:
    truth = np.eye(N, dtype=bool).ravel()

    def dense() -> float:
        grid = scores.block(slice(0, N), slice(0, N)).numpy()
        order = np.argsort(-grid.ravel(), kind="stable")
        guesses = int(np.argmax(truth[order])) + 1
        assert guesses >= 1
        return float(roc_auc_score(truth, grid.ravel()))

    assert benchmark.pedantic(dense, rounds=3) > 0.9
