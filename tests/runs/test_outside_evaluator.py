"""An evaluator from a file, with a metric of its own evidence, from the command line to the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from made.cells import records_of

from bench.cli import main

MINE = '''
import zlib
from dataclasses import dataclass
from typing import ClassVar, Literal
from bench.types import Column, Evaluator, Measurement, Metric, Picture, Score

@dataclass(frozen=True)
class SizeEvidence:
    raw: int
    released: int

@dataclass(frozen=True)
class Size(Evaluator):
    """How many bytes a release takes."""
    name: ClassVar[str] = "size"
    source: ClassVar[str] = "a test"
    evidence: ClassVar[type] = SizeEvidence
    def measure(self, bench):
        released = bench.sealed(bench.scheme(), 0).release.samples
        sizes = [len(zlib.compress(rows.numpy().tobytes())) for rows in (bench.private.samples, released)]
        return Measurement({"": SizeEvidence(*sizes)}, {}, {}, {})
    def pictures(self, bench, found):
        return PICTURES
    @classmethod
    def samples(cls):
        yield SizeEvidence(1000, 800)

@dataclass(frozen=True)
class SizeKept(Metric[SizeEvidence]):
    """Compressed bytes of the release as a share of the raw rows'."""
    name: ClassVar[str] = "size-kept"
    unit: ClassVar[str] = "share"
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    source: ClassVar[str] = "a test"
    column: ClassVar[Column] = Column("Size <kept>", "Bytes of the release as a share.", "Cost", digits=2)
    def __call__(self, evidence):
        return Score(evidence.released / evidence.raw, None, None, 1, note="no interval: counted whole")
'''
GOOD = '{"bars": Picture("Bars & <b>bytes</b>", b"\\x89PNG and more")}'


def run(folder: Path, pictures: str, *more: str) -> int:
    path = folder / "home of mine" / "mine.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(MINE.replace("PICTURES", pictures))
    arguments = ["--method", "identity", "--dataset", "digits", "--preset", "smoke", "--attack", "none", "--jobs", "1"]
    plugins = ["--evaluator", f"{path}:Size", "--metric", f"{path}:SizeKept"]
    return main(["run", *arguments, *plugins, "--device", "cpu", "--results", str(folder / "results"), *more])


def test_its_metric_and_its_picture_reach_the_page_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, GOOD) == 0
    (record,) = records_of(tmp_path / "results")
    assert (record.kind, record.evaluator, record.pictures) == ("size", "size", {"bars": "Bars & <b>bytes</b>"})
    assert abs(record.scores["size-kept"].value - 1) < 0.1  # the same rows in another order
    assert "Size <kept>" in capsys.readouterr().out
    page = (tmp_path / "results" / "site" / "methods" / "identity.html").read_text()
    assert "Bars &amp; &lt;b&gt;bytes&lt;/b&gt;" in page
    assert "Size &lt;kept&gt;" in page
    # Where the file lies may name a person.
    for path in (tmp_path / "results").rglob("*"):
        if path.is_file() and "artefacts" not in path.parts:
            assert b"home of mine" not in path.read_bytes(), path
    assert run(tmp_path, GOOD) == 0
    assert "0 computed, 1 already there" in capsys.readouterr().out
    assert main(["status", "--results", str(tmp_path / "results")]) == 0


@pytest.mark.parametrize(
    "pictures", ['{"../../x": Picture("", b"\\x89PNG")}', '{"x": Picture("", b"GIF89a")}', '{"A b": 1}', "1 / 0"]
)
def test_a_picture_that_cannot_be_kept_costs_no_figure_and_writes_nowhere(tmp_path: Path, pictures: str) -> None:
    assert run(tmp_path, pictures, "--no-site") == 0
    (record,) = records_of(tmp_path / "results")
    assert (record.status, record.pictures) == ("ok", {})
    assert list(tmp_path.rglob("*.png")) == []


def test_a_metric_whose_evidence_nobody_gives_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(MINE.replace("PICTURES", "{}"))
    asked = ["--method", "identity", "--dataset", "digits", "--metric", f"{tmp_path}/mine.py:SizeKept"]
    assert main(["run", *asked, "--attack", "none", "--results", str(tmp_path / "r")]) == 2
    assert "takes SizeEvidence, which no evaluator gives" in capsys.readouterr().err
