"""An evaluator from a file, with a metric of its own evidence, from the command line to the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from made.cells import records_of

from bench.cli import main
from bench.plugins import registry

MINE = '''
import zlib
from dataclasses import dataclass
from io import BytesIO
from typing import ClassVar, Literal
from PIL import Image
from bench.types import Column, Evaluator, Measurement, Metric, Picture, Score

made = BytesIO()
Image.new("L", (2, 2)).save(made, "PNG")
PNG = made.getvalue()

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
GOOD = '{"bars": Picture("Bars & <b>bytes</b>", PNG)}'


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
    captions = {name: picture.caption for name, picture in record.pictures.items()}
    assert (record.kind, record.evaluator, captions) == ("size", "size", {"bars": "Bars & <b>bytes</b>"})
    assert abs(record.scores["size-kept"].value - 1) < 0.1  # the same rows in another order
    assert "Size <kept>" in capsys.readouterr().out
    (own,) = (tmp_path / "results" / "site" / "cells").glob("identity*.html")
    page = own.read_text()
    assert "Bars &amp; &lt;b&gt;bytes&lt;/b&gt;" in page
    assert "Size &lt;kept&gt;" in page
    assert "--evaluator mine.py:Size --metric mine.py:SizeKept" in re.sub("<[^>]*>", "", page)
    # Where the file lies may name a person.
    for path in (tmp_path / "results").rglob("*"):
        if path.is_file() and "artefacts" not in path.parts:
            assert b"home of mine" not in path.read_bytes(), path
    assert run(tmp_path, GOOD) == 0
    assert "0 computed, 1 already there" in capsys.readouterr().out
    assert main(["status", "--results", str(tmp_path / "results")]) == 1
    assert f"your own: bench status --results {tmp_path / 'results'} --files" in capsys.readouterr().err
    assert main(["status", "--files", "--results", str(tmp_path / "results")]) == 0


@pytest.mark.parametrize(
    "pictures",
    [
        '{"../../x": Picture("", PNG)}', '{"x": Picture("", b"GIF89a")}', '{"x": Picture("", PNG + PNG)}',
        '{"A b": 1}', "1 / 0",
    ],
)  # fmt: skip
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
    assert "takes SizeEvidence, which no evaluator provides" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            'Measurement({"": SizeEvidence(*sizes)}, {}',
            'Measurement({"": 3}, {}',
            "evidence of the type SizeEvidence, got int",
        ),
        (
            'Measurement({"": SizeEvidence(*sizes)}, {}',
            "Measurement({}, {}",
            "evidence of the type SizeEvidence, got none",
        ),
        (
            'Measurement({"": SizeEvidence(*sizes)}, {}',
            'Measurement({"": SizeEvidence(*sizes)}, {"a": released}',
            "plain JSON",
        ),
        (
            'return Measurement({"": SizeEvidence(*sizes)}, {}, {}, {})',
            "return None",
            "must give a Measurement, got NoneType",
        ),
    ],
)
def test_what_no_record_could_hold_is_said_by_name(tmp_path: Path, old: str, new: str, reason: str) -> None:
    assert old in MINE
    path = tmp_path / "mine.py"
    path.write_text(MINE.replace("PICTURES", "{}").replace(old, new))
    asked = ["--method", "identity", "--dataset", "digits", "--preset", "smoke", "--attack", "none", "--jobs", "1"]
    plugins = ["--evaluator", f"{path}:Size", "--metric", f"{path}:SizeKept", "--no-site", "--device", "cpu"]
    assert main(["run", *asked, *plugins, "--results", str(tmp_path / "r")]) == 1
    (record,) = records_of(tmp_path / "r")
    assert record.status == "failed"
    assert reason in str(record.reason)


@pytest.mark.parametrize("name", ["../../up", "a--b", "A", "x[y]", ""])
def test_an_evaluator_whose_name_could_leave_the_folder_is_refused(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(MINE.replace("PICTURES", "{}").replace('= "size"', f'= "{name}"'))
    plugins = ["--evaluator", f"{tmp_path}/mine.py:Size", "--metric", f"{tmp_path}/mine.py:SizeKept"]
    asked = ["run", "--method", "identity", "--dataset", "digits", "--attack", "none", "--results", str(tmp_path / "r")]
    assert main([*asked, *plugins]) == 2
    assert "an evaluator's name must be" in capsys.readouterr().err


def test_two_plugins_of_one_name_are_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = MINE.replace("PICTURES", "{}")
    (tmp_path / "mine.py").write_text(text)
    (tmp_path / "again.py").write_text(text.replace("size-kept", "throughput").replace('= "size"', '= "throughput"'))
    asked = ["run", "--method", "identity", "--dataset", "digits", "--attack", "none", "--results", str(tmp_path / "r")]
    same = ["--metric", f"{tmp_path}/again.py:SizeKept", "--metric", "throughput"]
    assert main([*asked, "--evaluator", f"{tmp_path}/again.py:Size", *same]) == 2
    assert "two metrics are called throughput" in capsys.readouterr().err
    both = ["--evaluator", f"{tmp_path}/again.py:Size", "--metric", f"{tmp_path}/again.py:SizeKept"]
    (tmp_path / "again.py").write_text(text.replace('= "size"', '= "throughput"'))
    registry.module_of.cache_clear()
    registry.from_file.cache_clear()
    assert main([*asked, *both, "--metric", "throughput"]) == 2
    assert "two evaluators would write the records throughput" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_plan_with_a_file_that_is_gone_keeps_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, GOOD, "--no-site") == 0
    (tmp_path / "home of mine" / "mine.py").unlink()
    registry.module_of.cache_clear()
    registry.from_file.cache_clear()
    asked = ["--method", "identity", "--dataset", "digits", "--preset", "smoke", "--attack", "none", "--jobs", "1"]
    more = ["--metric", "throughput", "--no-site", "--device", "cpu", "--results", str(tmp_path / "results")]
    assert main(["run", *asked, *more]) == 0
    capsys.readouterr()
    assert main(["status", "--files", "--results", str(tmp_path / "results")]) == 1
    assert "1 done, 1 unknown" in capsys.readouterr().out
