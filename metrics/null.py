"""What chance gives: the distribution of pair metrics when scores are distinct and carry no information."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bench.seeds import generator

DRAWS = 400


def simulate_guesswork(shape: tuple[int, int], links: Tensor, samples: Sequence[Tensor], *, seed: int) -> Tensor:
    """Draws of mean guesswork over the data samples for one key under random distinct scores, by exact sampling.

    Only the scores that matter are drawn: one a link, and the unlinked ones above the lowest first hit of any sample.
    Their number is binomial and their places are uniform over the unlinked pairs (drawn twice as rarely as 1 in n m).

    Args:
        shape: (n, m) of the whole grid.
        links: (p, 2) int64.
        samples: Raw rows (int64) of each of at most 62 data samples; its released rows are those linked to them.

    Returns:
        (DRAWS,) float64.
    """
    random = np.random.default_rng(seed)
    n, m = shape
    pairs = torch.unique(links, dim=0).numpy()
    codes = pairs[:, 0] * m + pairs[:, 1]
    gaps = codes - np.arange(len(codes))
    row_bits, col_bits = np.zeros(n, dtype=np.int64), np.zeros(m, dtype=np.int64)
    for number, sample in enumerate(samples):
        row_bits[sample.numpy()] |= 1 << number
        col_bits[pairs[(row_bits[pairs[:, 0]] >> number) & 1 == 1, 1]] |= 1 << number
    inside = (row_bits[pairs[:, 0]][None] >> np.arange(len(samples))[:, None]) & 1 == 1
    draws = np.empty(DRAWS)
    for draw in range(DRAWS):
        first = np.where(inside, random.random(len(pairs)), -1.0).max(axis=1)
        room = 1 - first.min()
        above = random.binomial(n * m - len(pairs), room)
        place = random.integers(n * m - len(pairs), size=above)
        # The c-th unlinked place lies behind every link that has at most c unlinked places before it.
        place += np.searchsorted(gaps, place, side="right")
        bits = row_bits[place // m] & col_bits[place % m]
        value = 1 - room * random.random(above)
        better = [np.count_nonzero(((bits >> number) & 1 == 1) & (value > best)) for number, best in enumerate(first)]
        draws[draw] = 1 + np.mean(better)
    return torch.from_numpy(draws)


def interval_of_mean(draws: Tensor, keys: int, *, seed: int) -> tuple[float, float]:
    """95 % interval of the mean of `keys` independent draws, by resampling `draws`."""
    chosen = torch.randint(len(draws), (4000, keys), generator=generator(seed))
    low, high = torch.quantile(draws[chosen].mean(dim=1), torch.tensor((0.025, 0.975), dtype=torch.float64))
    return float(low), float(high)
