"""Ways in which Bob may learn from a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Architecture = Literal["linear", "resnet18", "sau", "strided"]


@dataclass(frozen=True)
class Recipe:
    """One way to learn.

    Args:
        architecture: A linear model or a network.
        view: What it reads: a name of `bench.bob.views`, or "rows" for networks, which read rows as they are.
        weight_decay: Of a network; None for linear models, whose penalties are all tried.
        dropout: Of a network; 0 for linear models.
        augmented: Whether a network sees rows shifted and mirrored at random.
        restart: Number of the start, from 0: restarts differ by their random numbers alone.
    """

    architecture: Architecture
    view: str = "rows"
    weight_decay: float | None = None
    dropout: float = 0.0
    augmented: bool = False
    restart: int = 0

    def __str__(self) -> str:
        words = [self.architecture, f"on {self.view}"]
        words += [] if self.weight_decay is None else [f"weight decay {self.weight_decay:g}, dropout {self.dropout:g}"]
        words += ["shifted and mirrored"] if self.augmented else []
        words += [f"restart {self.restart}"] if self.restart else []
        return ", ".join(words)


@dataclass(frozen=True)
class Choice:
    """A recipe, and where in its training the model was taken.

    Args:
        recipe: What was trained.
        at: A linear model's penalty; the share of its course that a network had done.
    """

    recipe: Recipe
    at: float


@dataclass(frozen=True)
class Shortlist:
    """What is left to train under further keys, once all recipes were tried under the first.

    Args:
        recipes: The best two by dev rows, which choose between them under each key; linear models stand first.
        outsider: What held-out released rows chose under the first key; None where they could not.
    """

    recipes: tuple[Recipe, ...]
    outsider: Choice | None
