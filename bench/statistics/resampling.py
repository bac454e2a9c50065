"""Resampling people: the bootstrap's weights, and data samples of half the people."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from bench.seeds import generator

LEVELS = torch.tensor((0.025, 0.975), dtype=torch.float64)
"""A 95 % interval."""
ONE_EACH = "people are not known: assumes one image a person"
"""What a figure says of itself where every row had to stand for a person of its own."""


def draw_weights(subjects: Tensor | None, n: int, draws: int, *, seed: int) -> Tensor:
    """How often each of n rows occurs when people are drawn with replacement, (draws, n) int64.

    Without subjects every row is a person of its own.
    """
    codes = torch.arange(n) if subjects is None else torch.unique(subjects, return_inverse=True)[1]
    people = int(codes.max()) + 1
    chosen = torch.randint(people, (draws, people), generator=generator(seed))
    times = torch.zeros(draws, people, dtype=torch.int64).scatter_add_(1, chosen, torch.ones_like(chosen))
    return times[:, codes]


def bootstrap_sums(values: Tensor, subjects: Tensor | None, draws: int, *, seed: int) -> Tensor:
    """Sums of rows (n, c) over people drawn with replacement, (draws, c) float64: `draw_weights` @ values.

    Without subjects every row is a person of its own. It takes memory for one draw of the people, not for all.
    """
    codes = torch.arange(len(values)) if subjects is None else torch.unique(subjects, return_inverse=True)[1]
    people = int(codes.max()) + 1
    own = torch.zeros(people, values.shape[1], dtype=torch.float64).index_add_(0, codes, values.to(torch.float64))
    random = generator(seed)
    sums = torch.empty(draws, values.shape[1], dtype=torch.float64)
    for draw in range(draws):
        sums[draw] = own.index_select(0, torch.randint(people, (people,), generator=random)).sum(dim=0)
    return sums


def half_samples(subjects: Tensor | None, n: int, samples: int, *, seed: int) -> list[Tensor]:
    """Raw rows (int64, ascending) of `samples` random halves of the people."""
    codes = torch.arange(n) if subjects is None else torch.unique(subjects, return_inverse=True)[1]
    people = int(codes.max()) + 1
    random = generator(seed)
    chosen = [torch.randperm(people, generator=random)[: max(1, people // 2)] for _ in range(samples)]
    return [torch.isin(codes, part).nonzero().flatten() for part in chosen]


def name_of(resamples: Tensor) -> str:
    """A name for resamples (b, n) that others of the same rows share and no other resamples: 16 hex digits."""
    content = resamples.to(torch.int64).contiguous().numpy().tobytes()
    return hashlib.sha256(repr(tuple(resamples.shape)).encode() + content).hexdigest()[:16]
