"""Statistics that reveal an input, each on releases that are made by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bench.audit.game_plays import Owner, Pair, RowPlay, Tosses
from bench.audit.leak_statistics import SPARE, _common, classifier, grid_residue, learn, linear_discriminant, nearness
from bench.contract.mechanism import Mechanism
from bench.randomness import Secret
from bench.seeds import generator
from bench.types import Dataset, Release

N, D = 40, 6


class Unit(Mechanism):
    """Laplace noise of scale 1 on rows as they are."""

    scale = torch.ones(D, dtype=torch.float64)

    def locate(self, data: Dataset) -> torch.Tensor:
        return data.samples.double()

    def observe(self, release: Release) -> torch.Tensor:
        return release.samples.double()


def row(value: float) -> Dataset:
    return Dataset("row", torch.full((1, D), value), None, None, (), False, True)


def play() -> RowPlay:
    owner = Owner(None, Secret.of_seed(0))  # type: ignore[arg-type]  # it releases nothing here
    return RowPlay(owner, Pair("low, high", row(0.0), row(1.0)), "in sets", lambda play, seen, spare: [])


def tosses(*, noise: float, seed: int, gap: float = 1.0, beside: bool = False) -> Tosses:
    """Rows of 0 for coins that fell on the first input, of `gap` for others, with Gaussian noise."""
    random = generator(seed)
    first = torch.arange(N) % 2 == 0
    rows = (~first).float()[:, None] * gap + noise * torch.randn(N, D, generator=random)
    return Tosses(first, Release(rows, None, None), torch.zeros(N, D) if beside else None)


def values(seen: Tosses) -> torch.Tensor:
    return seen.release.samples.double()


def test_nearness_is_positive_at_the_first_input_and_negative_at_the_second() -> None:
    here = tosses(noise=0.0, seed=0)
    statistics = nearness(play(), Unit())
    assert [one.name for one in statistics] == [
        "nearest number", "distance of numbers", "nearest code", "distance of codes",
    ]  # fmt: skip
    for statistic in statistics:
        assert torch.equal(statistic.of(here) > 0, here.first)


def test_nearness_of_rows_of_another_size_says_nothing() -> None:
    other = Tosses(torch.ones(3, dtype=torch.bool), Release(torch.rand(3, D + 1), None, None))
    assert nearness(play(), None)[0].of(other).tolist() == [0, 0, 0]


def test_the_likelihood_ratio_is_the_difference_of_absolute_errors() -> None:
    seen = tosses(noise=0.3, seed=1)
    statistic = next(one for one in learn(play(), seen, seen, Unit()) if one.name == "likelihood ratio")
    expected = (values(seen) - 1).abs().sum(dim=1) - values(seen).abs().sum(dim=1)
    assert torch.allclose(statistic.of(seen), expected)


@pytest.mark.parametrize("gap", [1.0, -1.0])
def test_a_linear_discriminant_separates_fresh_rows(gap: float) -> None:
    statistic = linear_discriminant("", values, tosses(noise=0.1, seed=2, gap=gap))
    fresh = tosses(noise=0.1, seed=3, gap=gap)
    assert statistic.of(fresh)[fresh.first].min() > statistic.of(fresh)[~fresh.first].max()


def test_a_linear_discriminant_of_one_side_says_nothing() -> None:
    seen = tosses(noise=0.1, seed=2)
    one_sided = Tosses(torch.ones_like(seen.first), seen.release)
    assert not linear_discriminant("", values, one_sided).of(seen).any()


def test_fractions_between_the_points_of_a_grid_tell_rows_apart() -> None:
    def on_grid(seed: int) -> Tosses:
        first = torch.arange(N) % 2 == 0
        steps = torch.randint(-20, 20, (N, D), generator=generator(seed))
        return Tosses(first, Release(steps * 0.5 + torch.where(first, 0.1, 0.3)[:, None], None, None))

    statistic = grid_residue(on_grid(4))
    assert statistic is not None
    fresh = on_grid(5)
    assert statistic.of(fresh)[fresh.first].min() > statistic.of(fresh)[~fresh.first].max()
    assert grid_residue(tosses(noise=1.0, seed=6)) is None  # Gaussian numbers lie on no grid


def test_the_common_step_is_the_greatest_common_divisor() -> None:
    assert _common(np.array([1.5, 2.5, 4.0]), 1e-4) == pytest.approx(0.5)
    assert _common(np.array([1.0, np.sqrt(2), np.pi]), 1e-3) < 50e-3


def test_a_forest_needs_both_sides_and_learns_from_them() -> None:
    few = Tosses(torch.arange(SPARE - 1) % 2 == 0, Release(torch.zeros(SPARE - 1, D), None, None))
    assert classifier((), few) is None
    one_sided = Tosses(torch.ones(N, dtype=torch.bool), Release(torch.zeros(N, D), None, None))
    assert classifier((), one_sided) is None
    forest = classifier(tuple(nearness(play(), None)), tosses(noise=0.1, seed=7))
    assert forest is not None
    fresh = tosses(noise=0.1, seed=8)
    assert forest.of(fresh)[fresh.first].min() > forest.of(fresh)[~fresh.first].max()


def test_statistics_are_those_that_the_release_allows() -> None:
    seen, spare = (tosses(noise=0.1, seed=seed, beside=True) for seed in (9, 10))
    names = {one.name for one in learn(play(), seen, spare, None)}
    assert {"distance from its neighbour", "linear discriminant of differences", "least number"} <= names
    assert not {"likelihood ratio", "nearest code", "released labels"} & names
