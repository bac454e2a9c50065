"""Predictions of a model that was trained on releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from bench.types import Attributes


@dataclass(frozen=True, eq=False)
class UtilityEvidence:
    """Bob's predictions for the test rows, decoded to the real classes, once per key.

    Args:
        scores: One (n, k) float32 a key; higher is likelier.
        labels: (n, k) float32: 1, 0, NaN.
        subjects: (n,) int64 or None.
        findings: The k names.
        seed: For the bootstrap.
        outsiders: Predictions as `scores`, by models chosen without other people's labels, on held-out released rows
            alone; empty where no such choice was made.
        attributes: Groups that the rows belong to; None where nobody knows.
    """

    scores: Sequence[torch.Tensor]
    labels: torch.Tensor
    subjects: torch.Tensor | None
    findings: tuple[str, ...]
    seed: int
    outsiders: Sequence[torch.Tensor] = ()
    attributes: Attributes | None = None
