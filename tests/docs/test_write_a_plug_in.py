"""The examples of the how-to on plug-ins work."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

import numpy as np
import pytest
import torch

from bench import room_types
from bench.cli import main
from bench.conformance import conform
from bench.plugins import registry
from bench.results.records import Record
from bench.results.results import Results

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "write-a-plug-in.md").read_text(encoding="utf-8")
RUN = ["run", "--method", "identity", "--dataset", "digits", "--preset", "smoke", "--attack", "none"]
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize(
    ("written", "group", "passed"),
    [("Blank[width=2]", "methods", 8), ("Rows", "attacks", 3), ("Stripes[people=9]", "datasets", 2),
     ("VarianceKept", "metrics", 3), ("Size", "evaluators", 3)],
)  # fmt: skip
def test_the_examples_satisfy_the_contract(tmp_path: Path, written: str, group: str, passed: int) -> None:
    name = written.partition("[")[0]
    code = next(code for code in EXAMPLES if f"class {name}(" in code)
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    results = conform(cast(registry.Group, group), f"{tmp_path}/example.py:{written}", torch.device("cpu"))
    assert [result for result in results if result.status == "failed"] == []
    assert sum(result.status == "passed" for result in results) >= passed


@pytest.fixture
def metric(tmp_path: Path) -> Path:
    """The example of a metric in a file."""
    path = tmp_path / "example.py"
    path.write_text(next(code for code in EXAMPLES if "class VarianceKept(" in code), encoding="utf-8")
    return path


def test_the_example_metric_is_shown_in_its_own_words(
    tmp_path: Path, metric: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    assert main([*RUN, "--jobs", "1", "--metric", f"{metric}:VarianceKept", "--results", str(results)]) == 0
    (record,) = (found for _, found in Results(results).records() if isinstance(found, Record))
    assert record.metrics["variance-kept"].title == "Variance kept"
    shown = f"{record.scores['variance-kept'].value:.2f}"
    out = capsys.readouterr().out
    assert "Variance kept ↑" in out
    assert shown in out
    (figures,) = (results / "site" / "data").glob("*-figures.html")
    text = figures.read_text(encoding="utf-8")
    assert f'<span class="value">{shown}</span>' in text
    assert "The share of the original variance that released rows have." in text


def test_a_run_refuses_a_metric_without_a_column_before_any_work(
    tmp_path: Path, metric: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metric.write_text(metric.read_text().replace("column: ClassVar[Column]", "shown: ClassVar[Column]"))
    results = tmp_path / "results"
    assert main([*RUN, "--metric", f"{metric}:VarianceKept", "--results", str(results)]) == 2
    assert "VarianceKept carries no column" in capsys.readouterr().err
    assert not results.exists()


def test_the_example_without_torch_releases_and_queries_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bench_room", room_types)
    module = ModuleType("own_time")
    monkeypatch.setitem(sys.modules, "own_time", module)
    exec(next(code for code in EXAMPLES if "class OwnTime(" in code), vars(module))
    rows = np.random.default_rng(0).random((3, 1, 4, 4), dtype=np.float32)
    private = room_types.Dataset("rows", rows, None, None, (), False, False)
    scheme = module.OwnTime().fit(None, 0)
    key, other = (scheme.sample_key(room_types.Secret.of_seed(seed)) for seed in (1, 2))
    release = key.release(private)
    np.testing.assert_array_equal(release.samples, key.query(rows))
    np.testing.assert_array_equal(release.samples, scheme.load_key(key.state()).release(private).samples)
    assert release.samples.dtype == np.float32
    assert np.abs(release.samples - other.release(private).samples).max() > 0.1


def test_every_example_is_tested() -> None:
    tested = ("class OwnTime(", "class Blank(", "class Rows(", "class Stripes(", "class VarianceKept(", "class Size(")
    assert all(any(name in code for name in tested) for code in EXAMPLES)
