"""Intervals: the spread over keys and data samples, and the bootstrap over people."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bench.seeds import generator
from bench.types import Score

LEVELS = torch.tensor((0.025, 0.975), dtype=torch.float64)


def spread(
    figures: Sequence[Sequence[float]], *, n: int, null: float | None, null_low: float | None, null_high: float | None
) -> Score:
    """Mean of a figure over keys x data samples; the interval is its 2.5-97.5 % spread over them (Syfer, section 5).

    A data sample holds half of the people, drawn without replacement: a half sample varies about the whole as much as a
    bootstrap sample does, and repeats no row, whose copy would be a second correct match.
    """
    flat = torch.tensor([value for key in figures for value in key], dtype=torch.float64)
    low, high = torch.quantile(flat, LEVELS).tolist()
    note = f"2.5-97.5 % over {len(figures)} keys x {len(figures[0])} samples of half the people"
    return Score(float(flat.mean()), low, high, n, null, null_low, null_high, note=note)


def draw_weights(subjects: Tensor | None, n: int, draws: int, *, seed: int) -> Tensor:
    """How often each of n rows occurs when people are drawn with replacement, (draws, n) int64.

    Without subjects every row is a person of its own.
    """
    codes = torch.arange(n) if subjects is None else torch.unique(subjects, return_inverse=True)[1]
    people = int(codes.max()) + 1
    chosen = torch.randint(people, (draws, people), generator=generator(seed))
    times = torch.zeros(draws, people, dtype=torch.int64).scatter_add_(1, chosen, torch.ones_like(chosen))
    return times[:, codes]


def half_samples(subjects: Tensor | None, n: int, samples: int, *, seed: int) -> list[Tensor]:
    """Raw rows (int64, ascending) of `samples` random halves of the people."""
    codes = torch.arange(n) if subjects is None else torch.unique(subjects, return_inverse=True)[1]
    people = int(codes.max()) + 1
    random = generator(seed)
    chosen = [torch.randperm(people, generator=random)[: max(1, people // 2)] for _ in range(samples)]
    return [torch.isin(codes, part).nonzero().flatten() for part in chosen]
