"""Small cells laid out for tests: a choice of data at the smallest preset, a place in a temporary folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from bench.contract.preset import PRESETS
from bench.plugins.configured import configure
from bench.plugins.spec import Value
from bench.randomness import Secret
from bench.results.records import Record
from bench.results.results import Results
from bench.results.store import Store
from bench.types import Dataset, Method
from bench.workbench.cell import Cell
from bench.workbench.choice import Choice
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench
from made.board_records import dataset as dataset_record


def choice(dataset: str = "digits", **more: Value) -> Choice:
    """A choice of data; `more` are options by name."""
    return Choice.read({"dataset": dataset, "preset": "smoke", **more})


def cell(method: str = "identity", dataset: str = "digits", **more: Value) -> Cell:
    """A cell on the CPU."""
    chosen = choice(dataset, **more)
    return Cell(configure("methods", method, chosen.preset), chosen, "cpu")


def place(folder: Path, results: str = "results") -> Place:
    """Results and cache below a folder, no data roots."""
    return Place(Results(folder / results), folder / "cache", ())


def opened(folder: Path, method: str = "identity", dataset: str = "digits", **more: Value) -> Workbench:
    """A cell laid out for work."""
    return Workbench.open(cell(method, dataset, **more), place(folder))


def laid_out(
    folder: Path, method: Method, parts: Mapping[str, Dataset], preset: str = "smoke", natural: Tensor | None = None
) -> Workbench:
    """A cell of a test's own parts, by their names; their record names the findings and the shape of the private."""
    private = parts["private"]
    record = dataset_record(
        "made", public="made", rows={name: len(part) for name, part in parts.items()}, subjects={},
        shape=list(private.samples.shape[1:]), findings=list(private.findings),
    )  # fmt: skip
    return Workbench(
        cell=cell(preset=preset), preset=PRESETS[preset], method=method, record=record,
        public=parts["public"], private=private, control=parts["control"], test=parts["test"],
        store=Store(folder / "store"), run_secret=Secret.of_seed(0, "tests"), natural=natural,
    )  # fmt: skip


def records_of(folder: Path) -> list[Record]:
    """Every record of a results folder that can be read."""
    return [found for _, found in Results(folder).records() if isinstance(found, Record)]
