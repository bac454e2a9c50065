"""The contract of a metric: what it must carry, and what an author is told who forgot it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bench.cli import main
from bench.conformance import conform

MINE = '''
from dataclasses import dataclass
from typing import ClassVar
from bench.evidence import TimingEvidence
from bench.types import Metric, Score

@dataclass(frozen=True)
class Mine(Metric[TimingEvidence]):
    """Seconds of the first repeat."""
    name: ClassVar[str] = "mine"
    unit: ClassVar[str] = "s"
    better: ClassVar[str] = "lower"
    source: ClassVar[str] = "a test"
    def __call__(self, evidence):
        return Score(evidence.seconds[0], None, None, 1, note="one repeat has no interval")
'''


def checked(tmp_path: Path, text: str) -> int:
    file = tmp_path / "mine.py"
    file.write_text(text)
    return main(["check", f"{file}:Mine", "--device", "cpu"])


def test_a_metric_without_a_column_is_refused_and_told_how_to_write_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(tmp_path, MINE) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "carries its column" in out
    assert "Mine carries no column" in out
    assert "from bench.types" in out


def test_a_direction_that_is_none_is_refused(tmp_path: Path) -> None:
    """What `bench check` prints, in this process: a process more is seconds more."""
    column = '    column = Column("Mine", "Seconds of one repeat.", "Cost")\n'
    text = MINE.replace("import Metric", "import Column, Metric").replace('"lower"\n', '"less"\n' + column)
    (tmp_path / "mine.py").write_text(text)
    results = conform("metrics", f"{tmp_path}/mine.py:Mine", torch.device("cpu"))
    (failed,) = (result for result in results if result.status == "failed")
    assert "'higher' or 'lower', got 'less'" in " ".join(failed.detail.split())
