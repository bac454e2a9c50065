"""A step of private training on gradients that are there, beside Opacus' own: floats in place of whole steps of a grid.

    OMP_NUM_THREADS=1 pytest tests/benchmarks/test_speed_private_step.py --benchmark-only

The figure in brackets is the ratio to Opacus. 128 rows of a small convolutional network of 81,000 weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import torch
from opacus.optimizers import DPOptimizer
from pytest_benchmark.fixture import BenchmarkFixture

from bench.nets.convolutional_networks import strided_cnn
from bench.nets.private_optimiser import PrivateOptimiser
from bench.randomness import Secret

ROWS = 128
SIZES = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": ROWS}


def opacus(optimiser: torch.optim.Optimizer) -> DPOptimizer:
    return DPOptimizer(optimiser, **SIZES)


def whole_steps(optimiser: torch.optim.Optimizer) -> DPOptimizer:
    return PrivateOptimiser(optimiser, Secret.of_seed(0).stream(), **SIZES)


@pytest.mark.parametrize("part", ["clip_and_accumulate", "add_noise"])
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("made", [opacus, whole_steps])
def test_speed(benchmark: BenchmarkFixture, made: Callable[[torch.optim.Optimizer], DPOptimizer], part: str) -> None:
    benchmark.group = part
    weights = list(strided_cnn((1, 28, 28), 10, norm="group").parameters())
    gradients = [torch.randn(ROWS, *weight.shape, generator=torch.Generator().manual_seed(0)) for weight in weights]
    optimiser = made(torch.optim.SGD(weights, lr=0.1))

    def ready() -> None:
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad_sample, weight.summed_grad = gradient.clone(), None
        if part == "add_noise":
            optimiser.clip_and_accumulate()

    benchmark.pedantic(getattr(optimiser, part), setup=ready, rounds=5)
