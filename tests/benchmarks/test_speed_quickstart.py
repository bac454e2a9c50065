"""The first suite of a new user in sandboxes, beside the same jobs without isolation.

    pytest tests/benchmarks/test_speed_quickstart.py --benchmark-only

The baseline runs methods and attacks in the judge's workers: no room is started, and none imports torch. Seconds of the
clock, for that is what a user waits: the machine must be idle. Each takes minutes, and runs once, with the folder of
prepared data empty; the number of records stands in the `extra_info`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.sandbox import why_not


@pytest.mark.benchmark(group="quickstart")
@pytest.mark.parametrize("isolation", ["none", "processes", "sandbox"])
def test_quickstart(benchmark: BenchmarkFixture, tmp_path: Path, isolation: str) -> None:
    if isolation == "sandbox" and (reason := why_not()) is not None:
        pytest.skip(f"no sandbox here: {reason}")
    command = [sys.executable, "-m", "bench", "run", "--suite", "quickstart", "--results", str(tmp_path / "results")]
    variables = {**os.environ, "BENCH_ISOLATION": isolation, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    benchmark.pedantic(
        subprocess.run, (command,), {"env": variables, "check": True, "capture_output": True}, rounds=1, iterations=1
    )
    records = [*(tmp_path / "results" / "cells").rglob("*.json")]
    benchmark.extra_info["records"] = len(records)
    assert records
