"""Preparing image files (decoded, resized, checked, digested, written) beside plain Pillow, in one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pytest_benchmark.fixture import BenchmarkFixture

from bench.data.picture import Reading
from bench.data.sample_array import decode_into

SIDE = 224
FILES = [(256, "jpg", 200), (512, "jpg", 100), (2048, "jpg", 8), (1024, "png", 16)]


def group(side: int, ending: str) -> str:
    return f"{ending} of {side} x {side} to {SIDE} x {SIDE}"


def files(folder: Path, side: int, ending: str, count: int) -> list[Path]:
    """Smooth greys with noise of the size of a film's grain."""
    random = np.random.default_rng(0)
    coarse = Image.fromarray((random.random((side // 8, side // 8)) * 255).astype(np.uint8))
    smooth = np.asarray(coarse.resize((side, side), Image.Resampling.BICUBIC)).astype(np.float32)
    paths = [folder / f"{row:04}.{ending}" for row in range(count)]
    for path in paths:
        grain = random.normal(0, 4, (side, side))
        Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8)).save(path)
    return paths


@pytest.mark.parametrize(("side", "ending", "count"), FILES)
def test_baseline_pillow(benchmark: BenchmarkFixture, tmp_path: Path, side: int, ending: str, count: int) -> None:
    benchmark.group = group(side, ending)
    paths = files(tmp_path, side, ending, count)

    def read() -> None:
        for path in paths:
            with Image.open(path) as image:
                np.asarray(image.convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR))

    benchmark.pedantic(read, rounds=5, warmup_rounds=1)


@pytest.mark.parametrize(("side", "ending", "count"), FILES)
def test_prepare(benchmark: BenchmarkFixture, tmp_path: Path, side: int, ending: str, count: int) -> None:
    benchmark.group = group(side, ending)
    paths, target = files(tmp_path, side, ending, count), tmp_path / "samples.npy"
    np.lib.format.open_memmap(target, mode="w+", dtype=np.uint8, shape=(count, 1, SIDE, SIDE)).flush()
    found = benchmark.pedantic(decode_into, args=(target, 0, paths, Reading(SIDE, 1)), rounds=5, warmup_rounds=1)
    assert not found.failures
