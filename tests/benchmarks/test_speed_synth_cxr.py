"""Drawing synthetic chest X-rays beside reading as many of the same size from PNG files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pytest_benchmark.fixture import BenchmarkFixture

from bench.data.sets.synth_cxr import SynthCXR

IMAGES = 50


def group(side: int) -> str:
    return f"synth-cxr, {IMAGES} images of {side} x {side}"


@pytest.mark.parametrize("side", [64, 128])
def test_baseline_read_png_files(benchmark: BenchmarkFixture, tmp_path: Path, side: int) -> None:
    benchmark.group = group(side)
    samples = SynthCXR(images=IMAGES).scan([], side).samples
    assert samples is not None
    for row in range(IMAGES):
        Image.fromarray(samples[row, 0]).save(tmp_path / f"{row:03}.png")

    def read() -> np.ndarray:
        return np.stack([np.asarray(Image.open(path)) for path in sorted(tmp_path.glob("*.png"))])

    np.testing.assert_array_equal(benchmark(read), samples[:, 0])


@pytest.mark.parametrize("side", [64, 128])
def test_draw_films(benchmark: BenchmarkFixture, side: int) -> None:
    benchmark.group = group(side)
    scan = benchmark.pedantic(SynthCXR(images=IMAGES).scan, args=([], side), rounds=3, warmup_rounds=1)
    assert scan.samples.shape == (IMAGES, 1, side, side)
