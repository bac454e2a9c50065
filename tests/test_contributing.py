"""The example in CONTRIBUTING.md is a working plug-in."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from bench.conformance import conform


def test_the_example_method_satisfies_the_contract(tmp_path: Path) -> None:
    text = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    (tmp_path / "example.py").write_text(code[1], encoding="utf-8")
    results = conform("methods", f"{tmp_path}/example.py:Blank[width=2]", torch.device("cpu"))
    assert [result for result in results if result.status == "failed"] == []
    assert sum(result.status == "passed" for result in results) >= 8
