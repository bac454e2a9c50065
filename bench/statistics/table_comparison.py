"""Comparison of two tables: bootstrap interval, exchange test, correlations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from bench.seeds import derive, generator
from bench.statistics.bootstrap import ENDS
from bench.types import Score

DRAWS = 499
MATCHED = "after matching mean and deviation"
NOTE = "95 % basic bootstrap over rows, which allows for the bias of a distance; chance: rows exchanged at random"


@dataclass(frozen=True, eq=False)
class Comparison:
    """Distances of two samples in c respects.

    Args:
        values: (c,) float64 distances, none below 0.
        drawn: (draws, c), the distances of samples drawn from the two with replacement.
        null: (draws, c), the distances after rows were exchanged between the two.
        n: Rows of the first.
    """

    values: torch.Tensor
    drawn: torch.Tensor
    null: torch.Tensor
    n: int

    def score(self) -> Score:
        """Mean distance; `p` counts exchanges at least as extreme.

        Distances are biased upwards in small samples, twice as much in resamples. The basic interval removes most of
        the bias; it always contains the figure. It is approximate: with 150 rows against 150 it covered the
        populations' distance in 70 to 97 of 100 cases.
        """
        value, null = float(self.values.mean()), self.null.mean(dim=1)
        high, low = (
            2 * value - torch.quantile(self.drawn.mean(dim=1), torch.tensor(ENDS, dtype=torch.float64))
        ).tolist()
        null_low, null_high = torch.quantile(null, torch.tensor(ENDS, dtype=torch.float64)).tolist()
        beyond = min(int((null >= value).sum()), int((null <= value).sum()))
        p = min(1.0, 2 * (1 + beyond) / (1 + len(null)))
        return Score(
            value, max(0.0, min(low, value)), max(high, value), self.n,
            null=float(null.mean()), null_low=null_low, null_high=null_high, p=p, note=NOTE,
        )  # fmt: skip

    def column(self, k: int) -> Comparison:
        """The comparison in respect k alone."""
        return Comparison(self.values[k : k + 1], self.drawn[:, k : k + 1], self.null[:, k : k + 1], self.n)


def compare(figure: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], *, n: int, m: int, seed: int) -> Comparison:
    """Distances of two samples, of their resamples, and after exchanges.

    Args:
        figure: Takes how often each of the n + m pooled rows stands in the first sample and in the second, (n + m,)
            int64 with sums n and m, and gives (c,) float64.
        n, m: The first n of the pooled rows are the first sample.
        seed: For draws and exchanges.
    """
    ours = (torch.arange(n + m) < n).to(torch.int64)
    random = generator(derive(seed, "rows"))
    drawn = []
    for _ in range(DRAWS):
        first = torch.bincount(torch.randint(n, (n,), generator=random), minlength=n + m)
        second = torch.bincount(n + torch.randint(m, (m,), generator=random), minlength=n + m)
        drawn.append(figure(first, second))
    random = generator(derive(seed, "exchange"))
    swaps = [ours[torch.randperm(n + m, generator=random)] for _ in range(DRAWS)]
    null = [figure(first, 1 - first) for first in swaps]
    return Comparison(figure(ours, 1 - ours), torch.stack(drawn), torch.stack(null), n)


def standard(rows: torch.Tensor) -> torch.Tensor:
    """Columns (n, d) with mean 0, deviation 1, float64; constants become 0."""
    std, mean = torch.std_mean(rows.to(torch.float64), dim=0, correction=0)
    varies = (rows != rows[:1]).any(dim=0)
    return torch.where(varies, (rows - mean) / std.where(varies, std.new_ones(())), 0.0)


def matched(released: torch.Tensor, original: torch.Tensor) -> torch.Tensor:
    """Released columns with the original's moments, float64; constant ones become the mean."""
    std, mean = torch.std_mean(original.to(torch.float64), dim=0, correction=0)
    return standard(released) * std + mean


CONSTANT = 1e-12
"""Of a column's variance: what resampling leaves below it is rounding."""


def correlations(rows: torch.Tensor, times: torch.Tensor | None = None) -> torch.Tensor:
    """Pearson correlations (d, d) float64 of the columns of (n, d).

    A constant column has correlation 0 with all, itself included.

    Args:
        rows: (n, d).
        times: (n,) how often each row counts; None stands for once.
    """
    units = standard(rows)
    shares = torch.full((len(rows),), 1 / len(rows), dtype=torch.float64) if times is None else times / times.sum()
    centred = units - shares.to(units) @ units
    products = centred.T @ (centred * shares.to(units)[:, None])
    variance = products.diagonal()
    scale = torch.where(variance > CONSTANT, variance.clamp_min(CONSTANT).rsqrt(), 0.0)
    return products * scale * scale[:, None]
