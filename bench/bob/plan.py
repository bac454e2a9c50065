"""How hard Bob tries."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import torch

from bench.bob.recipe import Architecture, Recipe
from bench.bob.shifts import bears_shifts
from bench.bob.views import views
from bench.nets.classifier import Course, Precision
from bench.nets.patches import fitting_patch
from bench.validation import at_least, between

SAU_STEPS = 2
"""Courses of a SAU are that much longer: a step of it costs a fraction of a ResNet's, and it learns more slowly."""
RATES: Mapping[Architecture, float] = {"resnet18": 3e-3, "sau": 2e-3, "strided": 5e-4}
"""Peak rates of networks; that of the strided one is Table 1's of the CADP paper."""


@dataclass(frozen=True)
class BobPlan:
    """How hard Bob tries.

    Args:
        architectures: Those that do not fit the kind of row are left out: networks read images. "strided" is the CADP
            paper's classifier, which is tried on request.
        epochs: Passes of a network over the release, or more, until it took `least_steps`.
        least_steps: Gradient steps of a ResNet, however few the rows; a SAU takes twice as many.
        steps: Upper bound on gradient steps a training; None for no bound.
        batch: Rows a step.
        width: Channels of the ResNet's first stage (64 is the usual ResNet-18).
        sau_width, sau_depth: Size of the SAU.
        weight_decays, dropouts: Values to try with each network.
        augment: Try networks on shifted and mirrored images too, where released rows are smooth.
        restarts: Starts of each network.
        hold_out: Share of the released rows that are held out at first, for a second choice without anybody's labels;
            None makes no such choice.
        patient: Whether networks that stay behind end their course.
        precision: Of networks; None takes the faster one of the device. The choice is kept in `Bob.precision`.
    """

    architectures: tuple[Architecture, ...] = ("linear", "resnet18", "sau")
    epochs: int = 12
    least_steps: int = 0
    steps: int | None = None
    batch: int = 64
    width: int = 64
    sau_width: int = 128
    sau_depth: int = 3
    weight_decays: tuple[float, ...] = (0.05,)
    dropouts: tuple[float, ...] = (0.0,)
    augment: bool = False
    restarts: int = 1
    hold_out: float | None = None
    patient: bool = True
    precision: Precision | None = None

    def __post_init__(self) -> None:
        at_least(2, batch=self.batch)
        at_least(0, least_steps=self.least_steps)
        at_least(1, epochs=self.epochs, steps=self.steps, restarts=self.restarts)
        at_least(1, width=self.width, sau_width=self.sau_width, sau_depth=self.sau_depth)
        between(0, 1, hold_out=self.hold_out)
        known = get_args(Architecture)
        if set(self.architectures) - set(known) or not self.architectures:
            raise ValueError(f"architectures must be some of {', '.join(known)}; got {self.architectures}")
        if not self.weight_decays or not self.dropouts:
            raise ValueError("weight_decays and dropouts must each hold at least one value")

    def recipes(self, samples: torch.Tensor) -> tuple[Recipe, ...]:
        """All that is tried on rows like these, linear models first: networks have to keep up with them."""
        found = [Recipe("linear", view) for view in views(samples)] if "linear" in self.architectures else []
        for name in self.architectures:
            if name == "linear" or not _reads(name, samples):
                continue
            varied = (False, True) if self.augment and name == "resnet18" and bears_shifts(samples) else (False,)
            found += [
                Recipe(name, "rows", decay, dropout, augmented, restart)
                for decay, dropout, augmented, restart in itertools.product(
                    self.weight_decays, self.dropouts, varied, range(self.restarts)
                )
            ]
        return tuple(found)

    def course(self, recipe: Recipe, rows: int, precision: Precision) -> Course:
        """How a network is trained on that many labelled rows."""
        longer = SAU_STEPS if recipe.architecture == "sau" else 1
        batches = max(1, rows // self.batch)
        epochs = max(self.epochs, -(-longer * self.least_steps // batches))
        assert recipe.weight_decay is not None
        return Course(epochs, self.steps, self.batch, RATES[recipe.architecture], recipe.weight_decay, precision)


def _reads(name: Architecture, samples: torch.Tensor) -> bool:
    if name == "sau":
        return samples.ndim == 4 and fitting_patch(samples.shape[2], samples.shape[3]) is not None
    return samples.ndim == 4
