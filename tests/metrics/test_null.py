from __future__ import annotations

import math

import pytest
import torch

from metrics.guesswork import guesswork
from metrics.null import DRAWS, interval_of_mean, simulate_guesswork
from metrics.pairs import count
from tests.metrics.dense_scores import DenseScores, diagonal


def brute_force(shape: tuple[int, int], links: torch.Tensor, samples: list[torch.Tensor], draws: int) -> torch.Tensor:
    """Mean guesswork over the data samples for whole random grids."""
    random = torch.Generator().manual_seed(11)
    found = []
    for _ in range(draws):
        scores = DenseScores(torch.rand(shape, generator=random, dtype=torch.float64))
        each = []
        for rows in samples:
            inside = links[torch.isin(links[:, 0], rows)]
            cols = torch.unique(inside[:, 1])
            local = torch.stack(
                [torch.searchsorted(part, inside[:, side].contiguous()) for side, part in enumerate((rows, cols))], 1
            )
            each.append(guesswork(count(scores.take(rows, cols), local)))
        found.append(sum(each) / len(each))
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["one-to-one", "several links"])
def test_the_simulation_has_the_distribution_of_whole_random_grids(kind: str) -> None:
    n = 24
    links = diagonal(n) if kind == "one-to-one" else torch.cat((diagonal(n), torch.tensor([[0, 1], [1, 0], [5, 7]])))
    samples = [torch.arange(0, n, 2), torch.arange(n // 2), torch.arange(n)]
    fast = simulate_guesswork((n, n), links, samples, seed=3)
    slow = brute_force((n, n), links, samples, DRAWS)
    # Two-sample Kolmogorov-Smirnov: sqrt(2 / draws) * 1.95 is exceeded once in a thousand by equal distributions.
    grid = torch.cat((fast, slow)).sort().values
    gap = torch.searchsorted(fast.sort().values, grid, right=True) - torch.searchsorted(
        slow.sort().values, grid, right=True
    )
    assert float(gap.abs().max()) / DRAWS < 1.95 * math.sqrt(2 / DRAWS)


def test_the_mean_is_the_closed_form() -> None:
    n = 50
    draws = simulate_guesswork((n, n), diagonal(n), [torch.arange(n)], seed=1)
    error = float(draws.std()) / math.sqrt(DRAWS)
    assert abs(float(draws.mean()) - (n * n + 1) / (n + 1)) < 4 * error


def test_more_keys_narrow_the_interval() -> None:
    draws = simulate_guesswork((30, 30), diagonal(30), [torch.arange(30)], seed=1)
    one, ten = interval_of_mean(draws, 1, seed=2), interval_of_mean(draws, 10, seed=2)
    assert one[0] < ten[0] < float(draws.mean()) < ten[1] < one[1]
