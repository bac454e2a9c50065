"""Pair scores held as a matrix: the slow, obvious form that the streaming one is tested against."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.types import PairScores


class DenseScores(PairScores):
    """Scores from an (n, m) matrix."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix
        self.shape = (matrix.shape[0], matrix.shape[1])

    def block(self, rows: slice, cols: slice) -> Tensor:
        return self.matrix[rows, cols]

    def take(self, rows: Tensor, cols: Tensor) -> DenseScores:
        return DenseScores(self.matrix[rows][:, cols])


def diagonal(n: int) -> Tensor:
    """Links (i, i)."""
    return torch.stack((torch.arange(n), torch.arange(n)), dim=1)
