"""How long a board takes from its records, and again when nothing has changed.

    OMP_NUM_THREADS=1 pytest tests/benchmarks/test_speed_pages.py --benchmark-only
    RECORDS=100,1000,10000 OMP_NUM_THREADS=1 pytest tests/benchmarks/test_speed_pages.py --benchmark-only

Made-up records (`tests/made/many_records.py`, 16 kB each). CPU time, so that neighbours on the machine do not count;
the largest page stands in the `extra_info`.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from made.many_records import write
from pytest_benchmark.fixture import BenchmarkFixture

from bench.results.results import Results
from leaderboard.site import build

SIZES = [int(size) for size in os.environ.get("RECORDS", "100,1000").split(",")]


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("size", SIZES)
def test_pages(benchmark: BenchmarkFixture, tmp_path: Path, size: int, again: bool) -> None:
    benchmark.group = f"{size} records"
    write(size, tmp_path / "results")
    results, site = Results(tmp_path / "results"), tmp_path / "site"
    if again:
        build(results, site)
    else:
        (tmp_path / "other").mkdir()
        build(Results(tmp_path / "other"), tmp_path / "warm")  # imports and templates
    benchmark.pedantic(build, (results, site), setup=None if again else lambda: shutil.rmtree(site, True), rounds=1)
    pages = [path.stat().st_size for path in site.rglob("*.html")]
    benchmark.extra_info["largest page"] = max(pages)
    assert max(pages) < 1_000_000
