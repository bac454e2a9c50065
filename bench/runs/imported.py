"""What several jobs of a run import for seconds each, and its workers therefore find imported."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.nets import convolutional_networks
from bench.plugins import registry
from bench.plugins.source_hash import behind
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
    source = Path(inspect.getfile(registry.load("evaluators", evaluator)))
    return Path(convolutional_networks.__file__) in behind(source)
