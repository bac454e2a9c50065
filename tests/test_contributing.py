"""The examples in CONTRIBUTING.md are working plug-ins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from bench.cli import main
from bench.conformance import conform
from bench.plugins import registry
from bench.results.records import Record, read_all

TEXT = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture
def example(tmp_path: Path):
    """Writes the code under a heading into a file, and returns its path."""

    def write(heading: str) -> Path:
        code = re.search(r"```python\n(.*?)```", TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0], re.DOTALL)
        assert code is not None
        path = tmp_path / "example.py"
        path.write_text(code[1], encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("heading", "group", "written", "checks"),
    [("A method", "methods", "Blank[width=2]", 8), ("A metric", "metrics", "SlowestRelease", 3)],
)
def test_the_examples_satisfy_the_contract(
    heading: str, group: registry.Group, written: str, checks: int, example
) -> None:
    results = conform(group, f"{example(heading)}:{written}", torch.device("cpu"))
    assert [result for result in results if result.status == "failed"] == []
    assert sum(result.status == "passed" for result in results) >= checks


def test_the_example_metric_is_shown_in_its_own_words(
    tmp_path: Path, example, capsys: pytest.CaptureFixture[str]
) -> None:
    results, metric = tmp_path / "results", f"{example('A metric')}:SlowestRelease"
    run = ["--method", "identity", "--dataset", "digits", "--preset", "smoke", "--attack", "none", "--metric", metric]
    assert main(["run", *run, "--jobs", "1", "--results", str(results)]) == 0
    (record,) = (found for _, found in read_all(results) if isinstance(found, Record))
    shown = f"{record.scores['slowest-release'].value:.4f}"
    assert record.metrics["slowest-release"].title == "Slowest release"
    out = capsys.readouterr().out
    assert "Slowest release ↓" in out
    assert shown in out
    for page in ("index.html", "methods/identity.html"):
        text = (results / "site" / page).read_text(encoding="utf-8")
        assert f'<span class="value">{shown}</span>' in text
        assert "How long the slowest of several releases of all private images took." in text


def test_a_run_refuses_a_metric_without_a_column_before_any_work(
    tmp_path: Path, example, capsys: pytest.CaptureFixture[str]
) -> None:
    path = example("A metric")
    path.write_text(path.read_text().replace("column: ClassVar[Column]", "shown: ClassVar[Column]"))
    run = ["--method", "identity", "--dataset", "digits", "--preset", "smoke", "--attack", "none"]
    results = tmp_path / "results"
    assert main(["run", *run, "--metric", f"{path}:SlowestRelease", "--results", str(results)]) == 2
    assert "SlowestRelease carries no column" in capsys.readouterr().err
    assert not results.exists()
