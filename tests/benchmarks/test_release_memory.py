"""The most memory that a release takes beyond its rows, as a multiple of the rows: every registered method."""

from __future__ import annotations

import pytest
from made.peak_memory import measure_peak, taken
from pytest_benchmark.fixture import BenchmarkFixture

from bench.plugins import registry

ROWS, SIDE = 2000, 64
METHODS = sorted(name for name, entry in registry.entries("methods").items() if entry.error is None)


def peak(name: str) -> float:
    """MB that a release of `ROWS` images takes beyond what was held before, itself included; -1 where there is none."""
    import torch

    from bench.plugins.spec import parse
    from bench.randomness import Secret
    from bench.types import Dataset, Method, NotApplicable

    source = torch.Generator().manual_seed(0)
    samples = torch.rand(ROWS, 1, SIDE, SIDE, generator=source)
    labels = torch.arange(2 * ROWS).view(ROWS, 2).remainder(2).float()
    images = Dataset("random images", samples, labels, None, ("a", "b"), False, True)
    method = registry.build("methods", parse(name), "smoke")
    assert isinstance(method, Method)
    few = images.take(torch.arange(256))
    try:
        key = method.fit(few, 0).sample_key(Secret.of_seed(1))
        key.release(few)  # what is made on first use is none of it
        return taken(lambda: key.release(images))
    except (NotApplicable, ValueError):
        return -1.0


@pytest.mark.parametrize("name", METHODS)
def test_release_memory(benchmark: BenchmarkFixture, name: str) -> None:
    found = measure_peak(benchmark, f"from test_release_memory import peak; print(peak({name!r}))")
    if found < 0:
        pytest.skip("it releases none of these")
    benchmark.extra_info["over_rows"] = found * 1e6 / (ROWS * SIDE * SIDE * 4)
