"""Releasing under a fresh key and copying the release: every registered method beside `identity`, the bare copy."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from bench.plugins import registry
from bench.plugins.spec import parse
from bench.randomness import Secret
from bench.types import Dataset, Method, NotApplicable

N, SIDE = 500, 64
METHODS = sorted(name for name, entry in registry.entries("methods").items() if entry.error is None)


@pytest.fixture(scope="module")
def images() -> Dataset:
    source = torch.Generator().manual_seed(0)
    samples = torch.rand(N, 1, SIDE, SIDE, generator=source)
    labels = (torch.rand(N, 2, generator=source) < 0.5).float()
    return Dataset("random images", samples, labels, None, ("a", "b"), False, True)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.benchmark(group=f"release, {N} images of {SIDE} x {SIDE}")
def test_release(benchmark: BenchmarkFixture, images: Dataset, name: str) -> None:
    method = cast(Method, registry.build("methods", parse(name), "smoke"))
    try:
        scheme = method.fit(images, 0)
        scheme.sample_key(Secret.of_seed(1)).release(images)
    except NotApplicable as reason:
        pytest.skip(str(reason))
    released = benchmark(lambda: scheme.sample_key(Secret.of_seed(1)).release(images).samples.clone())
    assert len(released) > 0
