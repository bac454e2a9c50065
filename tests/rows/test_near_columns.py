"""Near columns: a raw column with small noise or in coarse steps is found wherever it stands."""

from __future__ import annotations

import torch

from bench.rows.near_columns import near_columns
from bench.seeds import generator


def columns(n: int = 300, d: int = 12) -> torch.Tensor:
    """Columns of different places and widths."""
    source = generator(0)
    return torch.rand(n, d, generator=source) ** 2 * torch.linspace(0.5, 3, d) + torch.linspace(0, 5, d)


def test_columns_with_small_noise_are_found_elsewhere_in_another_order_of_rows() -> None:
    raw, source = columns(), generator(1)
    places = torch.randperm(12, generator=source)
    released = (raw + 0.01 * torch.randn(raw.shape, generator=source))[torch.randperm(300, generator=source)][:, places]
    found = near_columns(raw, released)
    assert torch.equal(found.raw, places)
    assert float(found.apart.max()) < 0.05


def test_noise_is_far_from_every_column_and_missing_rows_change_little() -> None:
    raw, source = columns(), generator(2)
    assert float(near_columns(raw, 5 * torch.randn(300, 7, generator=source)).apart.min()) > 0.5
    assert float(near_columns(raw, raw[:240]).apart.median()) < 0.1


def test_constant_columns_are_near_nothing() -> None:
    found = near_columns(torch.ones(20, 3), torch.ones(20, 2))
    assert bool(found.apart.isinf().all())
    assert near_columns(columns(), columns()).deviation.shape == (12,)
