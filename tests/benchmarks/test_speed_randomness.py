"""Laplace numbers of a secret stream beside torch's own, the difference of two exponential numbers.

    OMP_NUM_THREADS=1 pytest tests/benchmarks/test_speed_randomness.py --benchmark-only

Torch's are real numbers from a generator that keeps 32 bits of a seed; ours are whole numbers of 2^16 steps a scale,
exactly distributed, from a cipher under 256 bits. Real numbers of the stream, which no claim rests on, stand beside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture
from torch import Tensor

from bench.randomness import Secret
from bench.seeds import generator

N = 1 << 21
STEPS = Fraction(1 << 16)


def torch_difference() -> Tensor:
    source = generator(0)
    up, down = (torch.empty(N).exponential_(generator=source) for _ in range(2))
    return up - down


def stream_integers() -> Tensor:
    return Secret.of_seed(0).stream().laplace_integers(STEPS, N)


def stream_difference() -> Tensor:
    stream = Secret.of_seed(0).stream()
    return stream.exponential(N) - stream.exponential(N)


@pytest.mark.benchmark(group=f"{N} Laplace numbers", timer=time.process_time)
@pytest.mark.parametrize("draw", [torch_difference, stream_integers, stream_difference])
def test_laplace(benchmark: BenchmarkFixture, draw: Callable[[], Tensor]) -> None:
    numbers = benchmark(draw)
    scale = float(STEPS) if draw is stream_integers else 1.0
    assert numbers.shape == (N,)
    assert abs(float(numbers.double().abs().mean()) / scale - 1) < 0.01
