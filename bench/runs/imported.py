"""What several jobs of a run import for seconds each, and its workers therefore find imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.nets.convolutional_networks import resnet18
from bench.plugins import registry
from bench.plugins.code_digest import definitions
from bench.results.results import Results
from bench.workbench.cell import Cell, Planned

NETWORKS = "timm"
"""What builds ResNets: importing it takes a job 1.7 s of processor time, as long as torch itself."""


def imported(planned: Mapping[Cell, Sequence[Planned]], results: Results) -> list[str]:
    """The modules, for what has no record yet of these cells: of networks, where more than one job may train some."""
    names = [
        each.written
        for cell, evaluators in planned.items()
        for each in evaluators
        if each.attack is None and not results.holds(cell.folder, each.name)
    ]
    training = {name for name in set(names) if _trains(name)}
    return [NETWORKS] if sum(name in training for name in names) > 1 else []


def _trains(evaluator: str) -> bool:
    return f"{resnet18.__module__}:{resnet18.__name__}" in definitions(registry.load("evaluators", evaluator))
