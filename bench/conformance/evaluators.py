"""Checks of an evaluator: what it says of itself, and the samples of its evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import torch

from bench.conformance.outcome import PRESET, ROWS, Skip, require
from bench.contract.evaluator import NAME, check_measurement, check_pictures
from bench.contract.preset import PRESETS
from bench.plugins import registry
from bench.plugins.chosen import choose
from bench.plugins.spec import PluginSpec
from bench.results.results import Results
from bench.types import Attack, Evaluator
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.place import Place
from bench.workbench.workbench import Workbench

QUICK = {"pairs": "chance", "membership": "dcr"}  # an attack that takes no time, for evaluators that need one


def _class(spec: PluginSpec) -> type[Evaluator[Any]]:
    return cast("type[Evaluator[Any]]", registry.load("evaluators", spec.name))


def _fields_fit(spec: PluginSpec, device: torch.device) -> None:
    cls = _class(spec)
    require(isinstance(getattr(cls, "evidence", None), type), f"{cls.__name__}.evidence must be the type that it gives")
    names = [field.name for field in fields(cast(Any, cls))]
    if cls.scores is None:
        require(names == [], f"only an evaluator of attacks has a field, its attack: got {names}")
        require(cls.controls is None, "only an evaluator of attacks has controls")
    else:
        require(names == ["attack"], f"an evaluator of attacks has one field, attack: got {names}")


def _keys_count(spec: PluginSpec, device: torch.device) -> None:
    cls = _class(spec)
    made = cls() if cls.scores is None else cast(Any, cls)(cast(Attack, None))
    for name, preset in PRESETS.items():
        require(made.keys(preset) >= 1, f"keys must be at least 1, got {made.keys(preset)} at preset {name}")


def _samples_are_evidence(spec: PluginSpec, device: torch.device) -> None:
    cls = _class(spec)
    samples = list(cls.samples())
    if not samples:
        raise Skip("it gives no samples, so that metrics of its evidence cannot be tried without a run")
    for sample in samples:
        require(
            isinstance(sample, cls.evidence), f"a sample must be {cls.evidence.__name__}, got {type(sample).__name__}"
        )


def _measures_a_cell(spec: PluginSpec, device: torch.device) -> None:
    """The smallest cell there is: `identity` on some digits, with an attack that takes no time where it needs one."""
    cls = _class(spec)
    require(NAME.fullmatch(cls.name) is not None, f"its name must be of a-z, 0-9 and single hyphens, got {cls.name!r}")
    attack = None if cls.scores is None else choose("attacks", QUICK[cls.scores], PRESET)
    choice = Choice.read({"dataset": "digits", "preset": PRESET, "limit": ROWS})
    cell = Cell(choose("methods", "identity", PRESET), choice, device.type)
    with TemporaryDirectory() as folder:
        place = Place(Results(Path(folder, "results")), Path(folder, "cache"), ())
        bench = Workbench.open(cell, place)
        evaluator = Planned(spec.name, attack, ()).evaluator
        found = check_measurement(evaluator, evaluator.measure(bench))
        check_pictures(evaluator.pictures(bench, found))


CHECKS: Mapping[str, Callable[[PluginSpec, torch.device], None]] = {
    "fields fit": _fields_fit,
    "keys count": _keys_count,
    "samples are evidence": _samples_are_evidence,
    "measures a cell": _measures_a_cell,
}
