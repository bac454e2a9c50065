"""Heavy packages are executed only by what uses them: neither planning nor a job waits for the others."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from made.current_records import current

from bench import deferred_torch
from bench.plugins.configured import configure
from bench.results.results import Results
from bench.runs.plan import data_key, write_plan
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice

HEAVY = {
    "FrEIA", "huggingface_hub", "matplotlib", "medmnist", "numba", "opacus", "pandas", "seaborn", "sklearn", "timm",
    "torchvision",
}  # fmt: skip
JOB = """
import json, sys
import bench.cli
light = sorted(name for name in sys.modules if name in ("numpy", "pydantic", "rich", "torch"))
import torch
import bench.runs.tasks
from bench.randomness import Secret
from bench.plugins import registry
from bench.types import Dataset
for group in ("methods", "attacks", "metrics"):
    assert registry.working(group)  # imports every plug-in
from methods.noise import Noise
rows = Dataset("rows", torch.rand(4, 1, 8, 8), torch.ones(4, 1), None, ("a",), False, True)
Noise().fit(rows, 0).sample_key(Secret.of_seed(1)).release(rows)
print(json.dumps([light, sorted(name for name in sys.modules if "." not in name)]))
"""


def test_a_job_imports_nothing_heavy_that_it_does_not_use() -> None:
    done = subprocess.run([sys.executable, "-c", JOB], capture_output=True, text=True, check=True)
    light, imported = json.loads(done.stdout)
    assert light == []  # of the command line alone
    assert sorted(HEAVY & set(imported)) == []


MAIN = """
import sys
from bench.__main__ import command
code = command()
executed = sorted({"torch._C", "pandas._libs", "scipy._lib", "numba.core", "matplotlib.artist"} & set(sys.modules))
print("executed:", executed, file=sys.stderr)
sys.exit(code)
"""


BUILD = """
import sys
from bench.deferred_torch import defer
defer()
from bench.plugins import registry
from bench.plugins.spec import PluginSpec
for group in ("methods", "attacks", "metrics"):
    for name in registry.working(group):
        for preset in ("smoke", "paper"):
            registry.build(group, PluginSpec(name, None, ()), preset)
assert not {"torch._C", "scipy._lib", "numba.core"} & set(sys.modules)
"""


def test_building_plugins_executes_no_heavy_package() -> None:
    subprocess.run([sys.executable, "-c", BUILD], check=True)


def main_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["info", "cadp"], ["info", "contrastive"],
     ["run", "--suite", "quickstart", "--device", "cpu", "--dry-run", "--results", "results"]],
)  # fmt: skip
def test_listing_and_planning_execute_no_heavy_package(arguments: list[str], tmp_path: Path) -> None:
    done = main_process(*(tmp_path / each if each == "results" else each for each in arguments))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "executed: []"), done.stderr


def test_status_executes_no_heavy_package(tmp_path: Path) -> None:
    choice = Choice.read({"dataset": "digits", "preset": "smoke"})
    cell, record, results = Cell(configure("methods", "dp-image", "smoke"), choice, "cpu"), current(), Results(tmp_path)
    results.journal.keep_data(data_key(choice), record.dataset)
    write_plan(results, cell, [Planned("utility", None, ("utility-auc",))])
    done = main_process("status", "--results", tmp_path)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "executed: []"), done.stderr
    assert "never ran" in done.stdout


@pytest.fixture
def heavy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a package `made_heavy`, deferred, each of whose modules writes down that it was executed."""
    folder = tmp_path / "made_heavy"
    folder.mkdir()
    note = "import pathlib\nwith pathlib.Path(__file__).with_name('log').open('a') as log: log.write(__name__ + ' ')\n"
    start = note + "import time\ntime.sleep(0.2)\nfrom made_heavy import optim\nfrom made_heavy.optim import Adam\n"
    (folder / "__init__.py").write_text(start + "import made_heavy\nHERE = made_heavy.Adam\n")
    (folder / "optim.py").write_text(note + "class Adam: pass\n")
    (folder / "late.py").write_text(note + "import made_heavy\nlate = made_heavy.Adam\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(deferred_torch, "PACKAGES", frozenset({"made_heavy"}))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    deferred_torch.defer()
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "made_heavy"]:
        del sys.modules[name]


def log(folder: Path) -> list[str]:
    file = folder / "log"
    return file.read_text().split() if file.exists() else []


def test_a_deferred_package_is_executed_once_at_its_first_use(heavy: Path) -> None:
    package = import_module("made_heavy")
    assert import_module("made_heavy") is package
    assert find_spec("made_heavy") is package.__spec__
    assert (log(heavy), deferred_torch.deferred("made_heavy")) == ([], True)
    assert package.Adam is package.HERE
    assert (log(heavy), deferred_torch.deferred("made_heavy")) == (["made_heavy", "made_heavy.optim"], False)
    assert type(package) is type(sys)


@pytest.mark.parametrize("statement", ["import made_heavy.optim as optim", "from made_heavy import optim"])
def test_no_submodule_is_executed_twice(heavy: Path, statement: str) -> None:
    import_module("made_heavy")
    names: dict[str, object] = {}
    exec(statement, names)
    package = sys.modules["made_heavy"]
    assert names["optim"] is sys.modules["made_heavy.optim"] is package.optim
    assert package.optim.__spec__.loader is package.optim.__loader__
    assert import_module("made_heavy.late").late is package.Adam
    assert log(heavy) == ["made_heavy", "made_heavy.optim", "made_heavy.late"]


def test_threads_see_no_half_executed_package(heavy: Path) -> None:
    package, classes = import_module("made_heavy"), []
    threads = [threading.Thread(target=lambda: classes.append(package.HERE)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert classes == [package.Adam] * 8
    assert log(heavy) == ["made_heavy", "made_heavy.optim"]


def test_a_package_that_fails_says_so_at_each_use(heavy: Path) -> None:
    (heavy / "__init__.py").write_text("import no_such_library")
    package = import_module("made_heavy")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="no_such_library"):
            package.Adam  # noqa: B018


STATISTICS = """
from bench.deferred_torch import defer, deferred
defer()
import numpy, scipy, torch
assert scipy.stats.binom.sf(0, 1, 0.5) == 0.5
assert deferred("torch")
from scipy._lib.array_api_compat.common._helpers import is_torch_array
assert is_torch_array(torch.ones(1)) and not deferred("torch") and not is_torch_array(numpy.ones(1))
"""


def test_statistics_do_not_execute_torch_and_still_know_a_tensor() -> None:
    subprocess.run([sys.executable, "-c", STATISTICS], check=True)
