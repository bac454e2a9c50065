"""What came of a training: how good it was, and the model that is kept."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bench.bob.recipe import Choice, Recipe
from bench.nets.classifier import Precision, outputs


@dataclass(frozen=True)
class Best:
    """The best AUC of a training on some rows, and where in it (`Choice.at`) it was reached."""

    auc: float
    at: float


@dataclass(frozen=True)
class Trial:
    """One training.

    Args:
        recipe: What was trained.
        dev: Its best on dev rows.
        held_out: Its best on held-out released rows; None where none were held out.
        stopped: Whether it ended early, being behind.
        seconds: It took.
    """

    recipe: Recipe
    dev: Best
    held_out: Best | None
    stopped: bool
    seconds: float


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model.

    Args:
        choice: Where it comes from.
        network: From rows to logits, its view or standardisation included.
        exclusive: Whether predictions are a softmax over classes or one sigmoid a finding.
        precision: Arithmetic of a network; linear models are always float32.
    """

    choice: Choice
    network: torch.nn.Module
    exclusive: bool
    precision: Precision

    def predict(self, samples: torch.Tensor) -> torch.Tensor:
        """Probabilities (n, k), float64, in the release's own label code: `Key.decode` makes them real classes."""
        return probabilities(outputs(self.network, samples, self.precision).double(), self.exclusive)


def probabilities(logits: torch.Tensor, exclusive: bool) -> torch.Tensor:
    """Of classes (softmax) or findings (sigmoid), from logits (n, k)."""
    return logits.softmax(dim=1) if exclusive else logits.sigmoid()
