"""The grid: what float32 holds exactly, and how rows come onto it."""

from __future__ import annotations

import math

import pytest
import torch

from bench.randomness import Grid, Secret


@pytest.mark.parametrize(("scale", "reach"), [(10.0, 3.0), (1e-6, 1.0), (1e9, 1.0), (0.3, 1e4)])
def test_float32_holds_every_point_and_noise_hardly_ever_leaves(scale: float, reach: float) -> None:
    grid = Grid.for_noise(scale, reach)
    places = torch.tensor([-grid.most, -1, 0, 1, grid.most - 1, grid.most])
    assert torch.equal(grid.places(grid.values(places)), places)
    assert grid.most * grid.step >= 32 * reach + 64 * scale
    assert math.frexp(grid.step)[0] == 0.5


def test_rounding_to_zero_lengthens_no_vector() -> None:
    rows = Secret(bytes(32)).stream().normal(50, 8)
    grid = Grid(0.25)
    places = grid.places(rows, rounding="to zero")
    assert bool((grid.values(places).abs() <= rows.abs()).all())
    assert bool(((grid.values(places) - rows).abs() < 0.25).all())
    assert bool(((grid.values(grid.places(rows)) - rows).abs() <= 0.125).all())


def test_noise_has_its_scale_in_units_of_the_values() -> None:
    grid = Grid.for_noise(3.0, 1.0)
    stream = Secret(bytes(32)).stream()
    n = 50_000
    laplace = grid.values(grid.laplace(stream, 3.0, (n,))).double()
    gaussian = grid.values(grid.gaussian(stream, 3.0, (n,))).double()
    assert abs(float(laplace.abs().mean()) / 3 - 1) < 5 / math.sqrt(n)
    assert abs(float(gaussian.std()) / 3 - 1) < 5 / math.sqrt(2 * n)


@pytest.mark.parametrize("step", [0.0, -1.0, 0.3, math.inf, math.nan])
def test_a_step_is_a_power_of_two(step: float) -> None:
    with pytest.raises(ValueError, match="power of two"):
        Grid(step)


def test_what_is_no_number_has_no_place_and_what_is_infinite_the_last() -> None:
    grid = Grid(0.25)
    assert grid.places(torch.tensor([-math.inf, math.inf])).tolist() == [-grid.most, grid.most]
    with pytest.raises(ValueError, match="expected 3, got 2 NaN among them"):
        grid.places(torch.tensor([math.nan, 1.0, math.nan]))
