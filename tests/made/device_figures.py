"""Cells on the CPU and on a device: figures that differ by more than their intervals."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from bench.plugins.configured import configure
from bench.plugins.groups import GROUPS, Group
from bench.plugins.spec import UsageError
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
        "reidentification", configure("attacks", "nearest-neighbour", "smoke"), ("guesswork", "reid-auc")
    ),
    "contrastive": Planned("reidentification", configure("attacks", "contrastive", "smoke"), ("reid-auc",)),
}


SEEDS = (0, 1, 2)
"""Trainings on two devices part at the last bits, and end as far apart as two seeds do: figures that lie apart under
the first seed are looked at under the others."""


@dataclass(frozen=True)
class Compared:
    """A figure of one cell on both devices.

    Args:
        method, plan, metric: Which.
        pairs: The figure here and there by seed; None where it does not apply, or failed.
        seconds: Of the two evaluations under the first seed.
        error: What went wrong on the device; empty where nothing did.
    """

    method: str
    plan: str
    metric: str
    pairs: tuple[tuple[ScoreRecord | None, ScoreRecord | None], ...]
    seconds: tuple[float, float]
    error: str = ""

    @property
    def apart(self) -> bool:
        """Whether the device failed, or its figure lies apart from the CPU's on one side under every seed."""
        return bool(self.error) or abs(sum(_side(*pair) for pair in self.pairs)) == len(self.pairs)


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
    first, *others = SEEDS
    by_seed = [_evaluated(method, plan, places, device, first)]
    metrics = PLANS[plan].metrics
    if not by_seed[0].error and any(_side(*by_seed[0].pair(metric)) for metric in metrics):
        by_seed += [_evaluated(method, plan, places, device, seed) for seed in others]
    error = "; ".join(dict.fromkeys(each.error for each in by_seed if each.error))
    seconds = by_seed[0].seconds
    if seconds is None:
        return
    for metric in metrics:
        yield Compared(method, plan, metric, tuple(each.pair(metric) for each in by_seed), seconds, error)


@dataclass(frozen=True)
class _Evaluated:
    """One cell under one seed: what was measured here and there, in seconds (none where it does not apply)."""

    here: Mapping[str, ScoreRecord]
    there: Mapping[str, ScoreRecord]
    seconds: tuple[float, float] | None
    error: str = ""

    def pair(self, metric: str) -> tuple[ScoreRecord | None, ScoreRecord | None]:
        return self.here.get(metric), self.there.get(metric)


def _evaluated(method: str, plan: str, places: list[Place], device: torch.device, seed: int) -> _Evaluated:
    choice = Choice.read({"dataset": "digits", "preset": "smoke", "seed": seed})
    chosen, planned = configure("methods", method, "smoke"), PLANS[plan]
    scores, seconds, error = list[Mapping[str, ScoreRecord]](), list[float](), ""
    for place, where in zip(places, ("cpu", device.type), strict=True):
        try:
            found = evaluate_task(EvaluateTask(Cell(chosen, choice, where), place, planned, "none"))
        except NotApplicable:
            return _Evaluated({}, {}, None)
        except Exception as failure:  # whatever fails on a device is what this looks for
            error = f"{where}: {type(failure).__name__}: {failure}"
            scores.append({})
            seconds.append(0.0)
            continue
        scores.append(found.scores)
        seconds.append(found.seconds["total"])
        error = error or "; ".join(f"{where}: {name}: {why}" for name, why in found.broken.items())
    return _Evaluated(scores[0], scores[1], (seconds[0], seconds[1]), error)


def _side(cpu: ScoreRecord | None, other: ScoreRecord | None) -> int:
    """Where the device's figure lies: 1 above, -1 below the CPU's if each is outside the other's interval, else 0."""
    if cpu is None or other is None or _within(cpu.value, other) or _within(other.value, cpu):
        return 0
    return 1 if other.value > cpu.value else -1


def _within(value: float, other: ScoreRecord) -> bool:
    low = other.value if other.low is None else other.low
    high = other.value if other.high is None else other.high
    return low <= value <= high


COMPUTING: tuple[Group, ...] = tuple(group for group in GROUPS if group != "datasets")  # rows are read on the host


def needs_more(group: Group, name: str) -> str:
    """Why a plug-in cannot be built from its name alone (weights, a folder); empty if it can."""
    if group == "evaluators":  # some are built around an attack, which their own checks choose
        return ""
    try:
        configure(group, name, "smoke")
    except UsageError as error:
        return str(error)
    return ""
