"""Chance: every pair gets a random score. The floor that an attack must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from bench.seeds import derive
from bench.types import Attack, Attacker, PairScores, Release, View

# Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators" (SplitMix64), as signed 64-bit numbers.
STEP = 0x9E3779B97F4A7C15 - 2**64
MIX = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)


@dataclass(frozen=True)
class Chance(Attack):
    """Uniform scores, independent of the release."""

    name: ClassVar[str] = "chance"
    source: ClassVar[str] = "reference row: random scores"
    knowledge: ClassVar[str] = "nothing"

    def fit(self, view: View, seed: int) -> ChanceAttacker:
        """Nothing to learn."""
        return ChanceAttacker(derive(seed, "chance"), len(view.candidates))


@dataclass(frozen=True)
class ChanceAttacker(Attacker):
    """Random scores for `candidates` raw rows."""

    seed: int
    candidates: int

    def score(self, sealed: Release) -> HashScores:
        """Uniform scores in [0, 1), one a pair."""
        device = sealed.samples.device
        return HashScores(
            self.seed, torch.arange(self.candidates, device=device), torch.arange(len(sealed), device=device)
        )


class HashScores(PairScores):
    """Scores made where they are read: a hash of (seed, row number, column number), so that nothing is stored.

    Args:
        seed: 63-bit integer.
        rows, cols: (n,) and (m,) int64 numbers of the rows and columns.
    """

    def __init__(self, seed: int, rows: Tensor, cols: Tensor) -> None:
        self.seed, self.rows, self.cols = seed, rows, cols
        self.shape = (len(rows), len(cols))

    def block(self, rows: slice, cols: slice) -> Tensor:
        """Uniform numbers in [0, 1), float64, multiples of 2^-53."""
        row_hash = _mix(self.rows[rows] * STEP + self.seed)
        mixed = _mix(row_hash.unsqueeze(1) + self.cols[cols].unsqueeze(0) * STEP)
        return _shift(mixed, 11).to(torch.float64) * 2.0**-53

    def take(self, rows: Tensor, cols: Tensor) -> HashScores:
        """The scores of a sub-grid (int64 indices)."""
        return HashScores(self.seed, self.rows[rows], self.cols[cols])


def _mix(numbers: Tensor) -> Tensor:
    """SplitMix64's finaliser on int64 numbers read as unsigned."""
    for shift, factor in zip((30, 27), MIX, strict=True):
        numbers = (numbers ^ _shift(numbers, shift)) * factor
    return numbers ^ _shift(numbers, 31)


def _shift(numbers: Tensor, bits: int) -> Tensor:
    """Shift to the right that fills with zeros; int64's own repeats the sign."""
    shifted: Tensor = (numbers >> bits) & ((1 << (64 - bits)) - 1)
    return shifted
