"""The examples in CONTRIBUTING.md are working plug-ins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest
import torch

from bench.conformance import conform
from bench.plugins import registry

TEXT = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize(
    ("written", "group", "passed"),
    [("Blank[width=2]", "methods", 8), ("Rows", "attacks", 3), ("Stripes[people=9]", "datasets", 2),
     ("VarianceKept", "metrics", 2), ("Size", "evaluators", 3)],
)  # fmt: skip
def test_the_examples_satisfy_the_contract(tmp_path: Path, written: str, group: str, passed: int) -> None:
    name = written.partition("[")[0]
    code = next(code for code in EXAMPLES if f"class {name}(" in code)
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    results = conform(cast(registry.Group, group), f"{tmp_path}/example.py:{written}", torch.device("cpu"))
    assert [result for result in results if result.status == "failed"] == []
    assert sum(result.status == "passed" for result in results) >= passed


def test_every_example_is_tested() -> None:
    tested = ("class Blank(", "class Rows(", "class Stripes(", "class VarianceKept(", "class Size(")
    assert all(any(name in code for name in tested) for code in EXAMPLES)
