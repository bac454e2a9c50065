"""`bench.run` and its like in scripts: errors, tables, and scripts without a guard."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from made.board_records import auc, record

import bench
import bench.api
from bench.api.frames import COLUMNS, Results
from bench.api.notebook_progress import NotebookDisplay, in_notebook
from bench.runs.engine import Outcome

HEAVY = {"matplotlib", "numpy", "pandas", "pydantic", "rich", "scipy", "torch"}
UNGUARDED = '''
from dataclasses import dataclass
from typing import ClassVar

import bench
from bench.types import Keyless

STEPS = 2
print("the script runs")


def half(samples):
    return samples / STEPS


@dataclass(frozen=True)
class Dim(Keyless):
    """Halves."""

    name: ClassVar[str] = "dim"
    source: ClassVar[str] = "a test"
    by: float = 2.0

    def transform(self, samples):
        return half(samples) * self.by


found = bench.run(
    [Dim, Dim(by=0.5)], "digits", preset="smoke", attacks="none", metrics="max-dispersion", results="results",
    progress=False,
)
assert not found.failures, found.failures
print(found.frame()[["row", "metric", "status"]].to_csv(index=False))
'''


def test_importing_bench_loads_nothing_heavy_and_lists_its_functions() -> None:
    code = f"import bench, json, sys; print(json.dumps([dir(bench), sorted({HEAVY!r} & set(sys.modules))]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, heavy = json.loads(done.stdout)
    assert heavy == []
    assert set(bench.api.__all__) <= set(names)
    assert bench.__all__ == bench.api.__all__


def _endless() -> list[object]:
    held: list[object] = []
    held.append(held)
    return held


@pytest.mark.parametrize("name", bench.api.__all__)
def test_every_public_name_is_documented_and_every_function_has_an_example(name: str) -> None:
    """The doctests of the package run the examples; the notebook of the documentation walks the rest."""
    found = getattr(bench, name)
    assert found is getattr(bench.api, name)
    text = inspect.getdoc(found) or ""
    assert text
    if not isinstance(found, type):
        assert f">>> found = {name}(" in text or f"{name}(" in text.partition("Example:\n")[2]
        assert "Raises:" in text


def test_an_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'runs_well'"):
        bench.runs_well  # type: ignore[attr-defined]  # noqa: B018


def test_a_script_without_a_guard_runs_once(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(UNGUARDED)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines.count("the script runs") == 1
    assert [line for line in lines if line.startswith("dim")] == [
        "dim[by=2.0],max-dispersion,ok", "dim[by=0.5],max-dispersion,ok"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"methods": "sifer", "dataset": "digits"}, "did you mean 'syfer'"),
        ({"methods": "blur", "dataset": "nih", "preset": "smoke"}, "nih"),
        ({"methods": "blur", "dataset": "digits", "preset": "huge"}, "huge"),
        ({"methods": "blur", "dataset": "digits", "options": {"sedes": [1]}}, "sedes"),
        ({"methods": "blur", "dataset": "digits", "seeds": 1, "options": {"seeds": [2]}}, "an argument of its own"),
        ({"methods": "blur", "dataset": 3}, "expected a data set"),
        ({"methods": "blur", "data_root": "/", "dataset": "digits", "suite": "none such"}, "unknown suite"),
        ({}, "no method given"),
        ({"methods": {"blur"}, "dataset": "digits"}, "expected a method: .* got {'blur'}"),
        ({"methods": "blur", "attacks": 3}, "expected an attack"),
        ({"methods": "blur", "attacks": []}, 'attacks is empty: .* attacks="none"'),
        ({"methods": "blur", "metrics": ()}, "metrics is empty"),
        ({"methods": "blur", "options": "eve"}, "options must be a mapping .* got 'eve'"),
        ({"methods": "blur", "options": {1: 2}}, "option 1: Keys should be strings"),
        ({"methods": "blur", "seeds": [True]}, r"option seeds\[0\]: expected a valid integer, got True"),
        ({"suite": Path("quickstart")}, "suite must be a name"),
        ({"methods": "blur", "results": ""}, "results must be the path"),
        ({"methods": "blur", "results": None}, "results must be the path"),
        ({"methods": "blur", "results": b"r\xff".decode("utf-8", "surrogateescape")}, "the name is no UTF-8"),
        ({"methods": "blur", "options": {"keys": _endless()}}, "options hold themselves"),
        ({"methods": "blur", "results": "a\0b"}, "results must be the path"),
        ({"methods": "blur", "data_root": 3}, "data_root must be the path"),
        ({"methods": "blur", "config": 3}, "config must be the path"),
        ({"methods": "blur", "dataset": "digits", "preset": "smoke", "results": "/proc/none"}, "cannot write /proc/no"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_one_documented_error(
    arguments: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bench.BenchError, match=said) as found:
        bench.run(**arguments, progress=False)  # type: ignore[arg-type]
    assert found.value.__cause__ is not None


@pytest.mark.parametrize(
    "arguments",
    [
        {"seeds": range(2), "size": np.int16(8)},
        {"seeds": torch.arange(2), "size": torch.tensor(8), "options": {"controls": np.False_}},
        {"seeds": torch.tensor([0, 1]), "size": np.array(8), "attacks": np.array("chance")},
        {"seeds": np.arange(2), "attacks": np.array(["chance", "nearest-neighbour"])},
        {"methods": (name for name in ["blur"]), "metrics": {"reid-auc": None}.keys()},
        {"options": {"keys": np.int64(2), "size": np.int64(8)}},
    ],
)  # fmt: skip
def test_lists_and_numbers_of_other_libraries_are_taken(arguments: dict[str, object], tmp_path: Path) -> None:
    """The device is refused, which is looked at after they have been read."""
    with pytest.raises(bench.BenchError, match="option device"):
        bench.run(**{"methods": "blur", "dataset": "digits", "device": "tpu", "results": tmp_path} | arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("imported", "call", "error"),
    [
        ("import bench", "bench.run('blur', 'digits')", "FileNotFoundError"),
        ("from bench import BenchError, run", "run('blur', 'digits')", "BenchError"),
    ],
)
def test_a_working_folder_that_was_removed_is_said(imported: str, call: str, error: str, tmp_path: Path) -> None:
    """A library of torch would end the process without it."""
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os\n{imported}\nos.rmdir(os.getcwd())\ntry: {call}\nexcept {error} as error: print(error)"
    done = subprocess.run([sys.executable, "-c", code], cwd=gone, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("the working folder was removed"), done.stderr


def test_other_functions_raise_it_too(tmp_path: Path) -> None:
    for call in (
        lambda: bench.attack("chance", "sifer", "digits"),
        lambda: bench.attack("identity", "identity", "digits"),
        lambda: bench.load_dataset("nothing"),
        lambda: bench.load_dataset(["digits", "diabetes"]),  # type: ignore[arg-type]
        lambda: bench.compare(tmp_path),
        lambda: bench.release("sifer", "digits", tmp_path / "out"),
        lambda: bench.load_results(tmp_path),
        lambda: bench.load_results(None),  # type: ignore[arg-type]
        lambda: bench.attack("chance", "blur", "digits", metrics="utility-auc"),
        lambda: bench.release("blur", "digits", tmp_path / "out", accept=True),  # type: ignore[arg-type]
    ):
        with pytest.raises(bench.BenchError):
            call()


def test_a_release_that_needs_a_reason_says_so(tmp_path: Path) -> None:
    with pytest.raises(bench.BenchError, match=r'give your reason, accept="\.\.\.":\n- '):
        bench.release("blur", "digits", tmp_path / "out", results=tmp_path / "results", ledger=tmp_path / "ledger")
    assert not (tmp_path / "out").exists()


def test_an_exception_of_the_plug_in_passes_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\nfrom bench.types import Keyless\n"
        "@dataclass(frozen=True)\nclass Mine(Keyless):\n    name: ClassVar[str] = 'mine'\n"
        "    source: ClassVar[str] = 'a test'\n    def transform(self, samples):\n        return samples / [][0]\n"
    )
    with pytest.raises(IndexError):
        bench.attack("nearest-neighbour", f"{tmp_path}/mine.py:Mine", "digits")
    text = (tmp_path / "mine.py").read_text().replace("[][0]", "2")
    (tmp_path / "mine.py").write_text(text)  # as it is now, not as it was first read
    assert bench.attack("nearest-neighbour", f"{tmp_path}/mine.py:Mine", "digits").scores["reid-auc"].value == 1


def results() -> Results:
    records = (
        record("noise", scores={"reid-auc": auc(0.5)}),
        record("identity", status="failed", phase="attack", code="error", reason="a <b>bad</b> day"),
    )
    return Results(records, Path("nowhere"), {"nih": "its files are <not> here"})


def test_the_frame_has_a_line_a_figure_with_the_reason_for_a_missing_one() -> None:
    frame = results().frame()
    assert tuple(frame.columns) == COLUMNS
    frame = frame[frame["metric"] == "reid-auc"]
    ok, missing = frame[frame["row"] == "noise"].iloc[0], frame[frame["row"] == "identity"].iloc[0]
    assert (ok["metric"], ok["value"], ok["status"], ok["reason"]) == ("reid-auc", 0.5, "ok", "")
    assert frame["value"].isna().tolist() == [row != "noise" for row in frame["row"]]
    assert missing["reason"] == "a <b>bad</b> day"


def test_rows_that_differ_by_a_choice_alone_are_told_apart_and_none_is_lost() -> None:
    made = [record("noise", scores={"reid-auc": auc(v)}, eve=eve, cell=f"{eve}-{seed}", seed=seed)
            for v, eve in ((0.5, "same-image"), (0.6, "other-study")) for seed in (0, 1)]  # fmt: skip
    found = Results(tuple(made), Path("nowhere"))
    names = {"noise (eve same-image)", "noise (eve other-study)"}
    assert set(found.frame()["row"]) == names
    assert set(found.table().index.get_level_values("row")) == names
    assert len(found.table()) == len(made)
    alone = Results(tuple(made[:2]), Path("nowhere"))
    assert set(alone.frame()["row"]) == {"noise"}


def test_an_empty_table_has_the_columns_and_kinds_of_a_full_one() -> None:
    empty = Results((), Path("nowhere"))
    full = results().frame()
    assert tuple(empty.frame().columns) == COLUMNS
    numbers = [name for name in COLUMNS if full[name].dtype.kind in "if"]
    assert empty.frame()[numbers].dtypes.tolist() == full[numbers].dtypes.tolist()
    assert len(empty.table()) == 0
    assert "no row" in repr(empty)


def test_what_a_notebook_shows_is_escaped_and_names_what_is_missing() -> None:
    text = results()._repr_html_()
    assert "&lt;b&gt;bad" in text
    assert "&lt;not&gt; here" in text
    assert "<b>bad" not in text
    assert "1 failed" in repr(results())


def test_progress_in_a_notebook_is_a_bar_that_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    class Shown:
        HTML = str

        @staticmethod
        def display(content: str, display_id: bool) -> type[Shown]:
            drawn.append(content)
            return Shown

        update = staticmethod(drawn.append)

    monkeypatch.setattr("importlib.import_module", lambda name: Shown)
    assert not in_notebook()
    with NotebookDisplay() as display:
        display.expect(2)
        display.finished("one", Outcome("ok", None, None, None, None, 1.0))
        display.finished("two", Outcome("failed", None, "error", "<script>", "fit", 1.0))
    assert "value='2' max='2'" in drawn[-1]
    assert "two failed: &lt;script&gt;" in drawn[-1]
