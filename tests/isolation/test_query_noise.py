"""Rows that Bob sends to other authors' methods carry noise that no 8-bit method feels."""

from __future__ import annotations

import torch

from bench.isolation.query_noise import noisy
from bench.randomness import Secret

SECRET = Secret.of_seed(0, "a judge")


def images() -> torch.Tensor:
    return torch.randint(0, 256, (50, 1, 8, 8), generator=torch.Generator().manual_seed(0)) / 255


def test_images_round_to_what_they_were_and_no_pixel_between_the_ends_is_equal() -> None:
    rows = images()
    found = noisy(rows, SECRET)
    assert (found * 255).round().equal((rows * 255).round())
    assert found.min() >= 0
    assert found.max() <= 1
    inner = (rows > 0) & (rows < 1)
    assert (found != rows)[inner].float().mean() > 0.99
    assert abs(float((found - rows)[inner].mean())) < 0.1 / 255  # 3,000 numbers of deviation .29 / 255


def test_other_rows_and_other_secrets_give_other_noise_and_the_same_the_same() -> None:
    rows = images()
    assert noisy(rows, SECRET).equal(noisy(rows.clone(), SECRET))
    assert not (noisy(rows, SECRET) - rows)[:40].allclose(noisy(rows[:40], SECRET) - rows[:40], atol=1e-4)
    assert not noisy(rows, SECRET).equal(noisy(rows, Secret.of_seed(1, "another")))


def test_columns_of_a_table_move_by_a_part_of_their_range() -> None:
    rows = torch.randn(200, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 1000.0, 0.0])
    moved = (noisy(rows, SECRET) - rows).abs().amax(dim=0)
    width = rows.amax(dim=0) - rows.amin(dim=0)
    assert (moved <= 0.5 * width / 255).all()
    assert (moved[:2] > 0.4 * width[:2] / 255).all()
    assert noisy(rows[:0], SECRET).shape == (0, 3)
