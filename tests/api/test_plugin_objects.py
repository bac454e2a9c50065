"""Classes of scripts become files that hold what they use, and nothing that runs."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from made import toy_methods

from bench.api.plugin_objects import FOLDER, row_spec, source_of, spec_of
from bench.plugins.spec import UsageError
from methods.blur import Blur
from methods.mosaic import Mosaic
from metrics.ranks import Top1

SCRIPT = '''
import bench
from dataclasses import dataclass, field as given
from typing import ClassVar
from bench.types import Keyless

STEPS: int = 2
data = bench.load_dataset("digits")


def half(samples):
    return samples / STEPS


@dataclass(frozen=True)
class Dim(Keyless):
    """Halves."""

    name: ClassVar[str] = "dim"
    source: ClassVar[str] = "a test"
    claims: ClassVar[str] = "none"
    by: float = 2.0

    def transform(self, samples):
        return half(samples) * self.by


@dataclass(frozen=True)
class Uses(Dim):
    name: ClassVar[str] = "uses"

    def transform(self, samples):
        return samples + data.private.samples.mean()


raise SystemExit("the script ran again")
'''


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of a script that is running, up to its last line."""
    (tmp_path / "script.py").write_text(SCRIPT)
    module = ModuleType("__main__")
    module.__file__ = str(tmp_path / "script.py")
    monkeypatch.setitem(sys.modules, "__main__", module)
    text = SCRIPT.replace('bench.load_dataset("digits")', "None").rpartition("raise")[0]
    exec(compile(text, module.__file__, "exec"), vars(module))
    return module


def test_a_registered_plug_in_goes_by_its_name_and_an_instance_by_its_parameters(tmp_path: Path) -> None:
    assert spec_of("methods", Blur, tmp_path) == "blur"
    assert spec_of("methods", Mosaic(cell=4), tmp_path) == "mosaic[cell=4,epsilon=none,neighbour_pixels=none]"
    assert spec_of("metrics", Top1, tmp_path) == "top-1"
    assert spec_of("methods", "dp-simple[scale=20]", tmp_path) == "dp-simple[scale=20]"
    assert not any(tmp_path.iterdir())


def test_a_class_of_a_script_becomes_a_file_that_runs_nothing_else(script: ModuleType, tmp_path: Path) -> None:
    written = spec_of("methods", script.Dim(by=0.5), tmp_path / FOLDER)
    assert written == f"{tmp_path / FOLDER / 'dim.py'}:Dim[by=0.5]"
    text = (tmp_path / FOLDER / "dim.py").read_text()
    assert "STEPS: int = 2" in text
    assert "def half" in text
    assert "@dataclass(frozen=True)\nclass Dim(Keyless)" in text
    assert not any(word in text for word in ("SystemExit", "load_dataset", "given", "class Uses"))


def test_what_a_call_has_computed_is_refused_by_name(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Uses uses data, which a call has computed .*Make it a field"):
        spec_of("methods", script.Uses, tmp_path)


def test_a_later_cell_replaces_a_definition_of_an_earlier_one() -> None:
    cells = ["N = 1", "class A:\n    n = N", "N = 2", "not python at all", "class A:\n    m = N"]
    assert source_of("A", cells) == "N = 2\nclass A:\n    m = N"


def test_postponed_annotations_stay_postponed() -> None:
    cells = ["from __future__ import annotations\nclass A:\n    n: Later = 1"]
    assert source_of("A", cells).startswith("from __future__ import annotations\n")


def test_a_class_of_a_module_goes_by_its_file(tmp_path: Path) -> None:
    assert spec_of("methods", toy_methods.Keyed, tmp_path) == f"{toy_methods.__file__}:Keyed"


@pytest.mark.parametrize("wrong", [3, Top1, object()])
def test_what_is_no_plug_in_of_the_group_is_refused(wrong: object, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a method: a spec such as"):
        spec_of("methods", wrong, tmp_path)


def test_rows_are_named_without_files(script: ModuleType) -> None:
    assert row_spec(script.Dim) == "dim"
    assert row_spec(script.Dim(by=0.5)) == "dim[by=0.5]"


@pytest.mark.parametrize(
    "statement",
    ["N = 1\nN += 2", "(N := 3)", "if 1:\n    N = 3", "for N in range(3): pass", "N = {}\nN['a'] = 1",
     "N = A\nN.b.c = 1", "N = 1\ndel N", "with open('x') as N: pass"],
)  # fmt: skip
def test_a_name_that_other_statements_set_or_change_is_refused_and_never_copied_half(statement: str) -> None:
    with pytest.raises(UsageError, match="A uses N, which another statement sets or changes"):
        source_of("A", [f"{statement}\nclass A:\n    n = N"])
    assert "N = 5" in source_of("A", [f"{statement}\nN = 5\nclass A:\n    n = N"])  # as it is in the end


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["import os; N = 2; M = run(A)\nclass A:\n    n = N"], "N = 2\nclass A:\n    n = N"),
        (["x = 'a\u2028b'\nclass A:\n    n = x"], "x = 'a\\u2028b'\nclass A:\n    n = x"),
        (["class B: pass", "class A(B): pass", "class B: x = 2"], "class B: x = 2\nclass A(B): pass"),
        (["class A:\n    def f(self): return C()\nclass C(A): pass"],
         "class A:\n    def f(self): return C()\nclass C(A): pass"),
        (["class A:\n    def f(self):\n        found = 1\n        return found\nfound = run(A)"],
         "class A:\n    def f(self):\n        found = 1\n        return found"),
        (["from math import *\nfrom cmath import *\nclass A:\n    n = pi"],
         "from math import *\nfrom cmath import *\nclass A:\n    n = pi"),
        (["async def g(): ...\nclass A:\n    n = g"], "async def g(): ...\nclass A:\n    n = g"),
        (["try:\n    import numpy as np\nexcept ImportError:\n    np = None\nclass A:\n    n = np"],
         "import numpy as np\nclass A:\n    n = np"),
    ],
    ids=["one line", "line separator", "later base", "circle", "own variable", "stars", "async", "tried import"],
)  # fmt: skip
def test_the_copied_source_is_whole_and_in_an_order_that_runs(cells: list[str], expected: str) -> None:
    assert source_of("A", cells) == expected
