"""Chance: every pair gets a random score, the floor for other attacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

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
    needs_public: ClassVar[bool] = False
    relinks: ClassVar[bool] = True

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
        return HashScores(self.seed, (self.candidates, len(sealed)), sealed.samples.device)


class HashScores(PairScores):
    """Scores from a hash of (seed, row, column); nothing is stored.

    Args:
        seed: 63-bit integer.
        shape: (n, m).
        device: The device of the blocks.
    """

    def __init__(self, seed: int, shape: tuple[int, int], device: torch.device) -> None:
        self.seed, self.shape, self.device = seed, shape, device

    def block(self, rows: slice, cols: slice) -> torch.Tensor:
        """Uniform numbers in [0, 1), float64, multiples of 2^-53."""
        numbers = [torch.arange(n, device=self.device)[part] for n, part in zip(self.shape, (rows, cols), strict=True)]
        row_hash = _mix(numbers[0] * STEP + self.seed)
        mixed = _mix(row_hash.unsqueeze(1) + numbers[1].unsqueeze(0) * STEP)
        return _shift(mixed, 11).to(torch.float64) * 2.0**-53


def _mix(numbers: torch.Tensor) -> torch.Tensor:
    """SplitMix64's finaliser on int64 numbers read as unsigned."""
    for shift, factor in zip((30, 27), MIX, strict=True):
        numbers = (numbers ^ _shift(numbers, shift)) * factor
    return numbers ^ _shift(numbers, 31)


def _shift(numbers: torch.Tensor, bits: int) -> torch.Tensor:
    """Right shift that fills with zeros; int64's own repeats the sign."""
    shifted: torch.Tensor = (numbers >> bits) & ((1 << (64 - bits)) - 1)
    return shifted
