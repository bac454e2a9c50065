"""How long a board takes from its records, again when nothing has changed, and when one row has.

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
from made.many_records import many, write
from pytest_benchmark.fixture import BenchmarkFixture

from bench.results.records import dumps
from bench.results.results import Results
from leaderboard.site import build

SIZES = [int(size) for size in os.environ.get("RECORDS", "100,1000").split(",")]


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("what", ["first", "again", "one row changed"])
@pytest.mark.parametrize("size", SIZES)
def test_pages(benchmark: BenchmarkFixture, tmp_path: Path, size: int, what: str) -> None:
    benchmark.group = f"{size} records"
    write(size, tmp_path / "results")
    results, site = Results(tmp_path / "results"), tmp_path / "site"
    if what != "first":
        build(results, site)
        if what == "one row changed":
            one = next(many(size))
            path = results.root / "cells" / one.cell / f"{one.evaluator}.json"
            path.write_text(dumps(one.model_copy(update={"git": "0" * 40, "digest": None})))
    else:
        (tmp_path / "other").mkdir()
        build(Results(tmp_path / "other"), tmp_path / "warm")  # imports and templates
    setup = (lambda: shutil.rmtree(site, True)) if what == "first" else None
    benchmark.pedantic(build, (results, site), setup=setup, rounds=1)
    pages = [path.stat().st_size for path in site.rglob("*.html")]
    benchmark.extra_info["largest page"] = max(pages)
    assert max(pages) < 1_000_000
