"""The same cells on the CPU and on the device: figures that differ by more than their intervals are findings."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from bench.plugins.chosen import choose
from bench.randomness import Secret
from bench.results.records import ScoreRecord
from bench.results.results import Results
from bench.runs.tasks import EvaluateTask, evaluate_task
from bench.types import NotApplicable
from bench.workbench.cell import Cell, Planned
from bench.workbench.choice import Choice
from bench.workbench.place import Place

METHODS = ("identity", "noise", "dp-simple[scale=1]", "random-layers[patch_size=4]", "dp-image", "dp-glow", "cadp")
PLANS: Mapping[str, Planned] = {
    "utility": Planned("utility", None, ("utility-auc",)),
    "nearest-neighbour": Planned(
        "reidentification", choose("attacks", "nearest-neighbour", "smoke"), ("guesswork", "reid-auc")
    ),
    "contrastive": Planned("reidentification", choose("attacks", "contrastive", "smoke"), ("reid-auc",)),
}


@dataclass(frozen=True)
class Compared:
    """A figure of one cell on both devices.

    Args:
        method, plan, metric: Which.
        cpu, other: The figure here and there; None where it does not apply, or failed.
        seconds: Of the two evaluations.
        error: What went wrong on the device; empty where nothing did.
    """

    method: str
    plan: str
    metric: str
    cpu: ScoreRecord | None
    other: ScoreRecord | None
    seconds: tuple[float, float]
    error: str = ""

    @property
    def apart(self) -> bool:
        """Whether the device failed, or each figure lies outside the other's interval."""
        if self.error or self.cpu is None or self.other is None:
            return bool(self.error)
        return not (_within(self.cpu.value, self.other) or _within(self.other.value, self.cpu))


def compared(device: torch.device) -> Iterator[Compared]:
    """Evaluate digits at `smoke` under one run secret on both devices, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        places = [Place(Results(Path(folder) / name), Path(folder) / "cache", ()) for name in ("cpu", "other")]
        secret = Secret.of_seed(0, "gpu-check")
        for place in places:
            place.results.keep_secret(secret)
        for method in METHODS:
            for plan in PLANS:
                yield from _one(method, plan, places, device)


def _one(method: str, plan: str, places: list[Place], device: torch.device) -> Iterator[Compared]:
    choice = Choice.read({"dataset": "digits", "preset": "smoke"})
    chosen, planned = choose("methods", method, "smoke"), PLANS[plan]
    scores, seconds, error = list[Mapping[str, ScoreRecord]](), list[float](), ""
    for place, where in zip(places, ("cpu", device.type), strict=True):
        try:
            found = evaluate_task(EvaluateTask(Cell(chosen, choice, where), place, planned, "none"))
        except NotApplicable:
            return
        except Exception as failure:  # whatever fails on a device is what this looks for
            error = f"{where}: {type(failure).__name__}: {failure}"
            scores.append({})
            seconds.append(0.0)
            continue
        scores.append(found.scores)
        seconds.append(found.seconds["total"])
        error = error or "; ".join(f"{where}: {name}: {why}" for name, why in found.broken.items())
    for metric in planned.metrics:
        here, there = (each.get(metric) for each in scores)
        yield Compared(method, plan, metric, here, there, (seconds[0], seconds[1]), error)


def _within(value: float, other: ScoreRecord) -> bool:
    low = other.value if other.low is None else other.low
    high = other.value if other.high is None else other.high
    return low <= value <= high
