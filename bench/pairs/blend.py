"""Two attacks' scores of the same pairs, added in units of their own spread."""

from __future__ import annotations

import torch

from bench.types import PairScores

SAMPLE = 1024


class BlendedScores(PairScores):
    """`first` plus `weight` times `second`, each divided by the deviation of its first block of up to 1024 x 1024.

    Raises:
        ValueError: Scores of different shapes.
    """

    def __init__(self, first: PairScores, second: PairScores, weight: float) -> None:
        if tuple(first.shape) != tuple(second.shape):
            raise ValueError(f"scores to add must be of the same pairs, got {first.shape} and {second.shape}")
        self.shape = (first.shape[0], first.shape[1])
        self._parts = ((first, 1 / _deviation(first)), (second, weight / _deviation(second)))

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Sums (rows, cols), float64."""
        (first, one), (second, two) = self._parts
        return first.block(rows, cols).double() * one + second.block(rows, cols).double() * two


def _deviation(scores: PairScores) -> float:
    n, m = scores.shape
    part = scores.block(slice(0, min(n, SAMPLE)), slice(0, min(m, SAMPLE))).double()
    return max(float(part.std(correction=0)), torch.finfo(torch.float64).tiny) or 1.0
