"""The script of release rates, in a short turn on a CPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.evaluators import throughput

sys.path.insert(0, str(Path(__file__).parents[1] / "campaigns"))
import release_rates


def test_each_method_has_a_line_with_its_rate_or_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(throughput, "SWEPT", throughput.SWEPT)
    words = "identity cvae --dataset synth-cxr --size 32 --preset smoke --limit 40 --device cpu"
    release_rates.main([*words.split(), "--folder", str(tmp_path)])
    identity, cvae = (json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{"))
    assert identity["method"]["name"] == "identity"
    assert identity["images"] == 40
    assert min(identity["release_seconds"]) > 0
    assert "vectors" in cvae["does not apply"]
